// Mesh, model, arenas and state.
#include "runtime/plan/check.h"

namespace k31::check {

// More than any machine addresses; keeps sums of arenas far from overflow.
static constexpr uint64_t kMaxArena = uint64_t(1) << 47;

Result<void> model(const plan::Plan &plan) {
  const plan::Mesh &mesh = *plan.mesh();
  uint64_t world = 1;
  for (uint32_t extent : {mesh.tp(), mesh.dp(), mesh.pp()})
    world = extent >= 1 && extent <= 65536 && world <= 65536 ? world * extent : 0;
  if (world == 0 || world > 65536 || mesh.ep() == 0 || mesh.ep() > world || mesh.node() == 0 || mesh.node() > world)
    return refuse(cat("the mesh is tp=", mesh.tp(), ",dp=", mesh.dp(), ",ep=", mesh.ep(), ",pp=", mesh.pp(),
                      ",node=", mesh.node(), ", expected 1 to 65536 ranks, with ep and node between 1 and that"));
  // Else a group of experts, or one over several dp groups, would name ranks of another stage or none.
  const bool nested = mesh.ep() > mesh.tp() ? mesh.ep() % mesh.tp() == 0 : mesh.tp() % mesh.ep() == 0;
  if (!nested || mesh.tp() * mesh.dp() % mesh.ep() != 0)
    return refuse(cat("the mesh is tp=", mesh.tp(), ",dp=", mesh.dp(), ",ep=", mesh.ep(),
                      ", expected an ep that divides the ranks of a stage, and that divides tp or is a multiple of it"));

  const plan::Model &m = *plan.model();
  if (m.layer_begin() >= m.layer_end() || m.layer_end() > m.layers())
    return refuse(cat("the plan holds layers ", m.layer_begin(), " to ", m.layer_end(), " of ", m.layers(),
                      ", expected a part that is not empty"));
  if (m.hidden() == 0 || m.vocab() == 0 || m.max_context() == 0 || m.max_batch() == 0)
    return refuse(cat("hidden ", m.hidden(), ", vocab ", m.vocab(), ", max_context ", m.max_context(), ", max_batch ",
                      m.max_batch(), ": all must be above 0"));
  if (m.activations() != plan::DType::f32 && m.activations() != plan::DType::bf16)
    return refuse(cat("activations are of type ", int(m.activations()), ", expected f32 or bf16"));
  if (m.eos())
    for (int32_t id : *m.eos())
      if (id < 0 || static_cast<uint32_t>(id) >= m.vocab())
        return refuse(cat("the end id ", id, " is outside the vocabulary of ", m.vocab()));
  return {};
}

static Result<void> arenas(const plan::Plan &plan) {
  for (const plan::Arena *arena : *plan.arenas()) {
    const std::string name = "arena " + quote(arena->name()->str());
    if (!in_range(arena->kind(), plan::ArenaKind::MAX))
      return refuse(cat(name, " is of kind ", int(arena->kind()), ", the last kind is ", int(plan::ArenaKind::MAX)));
    if (arena->bytes() > kMaxArena)
      return refuse(cat(name, " has ", arena->bytes(), " bytes, at most ", kMaxArena, " are possible"));
    const uint32_t alignment = arena->alignment();
    if (alignment < 8 || (alignment & (alignment - 1)) != 0 || alignment > (2u << 20))
      return refuse(cat(name, " has alignment ", alignment, ", expected a power of two from 8 to 2 MiB"));
  }
  return {};
}

static Result<void> state(const plan::Plan &plan) {
  const plan::StateGroup &group = *plan.state();
  if (group.block_tokens() == 0)
    return refuse("a cache block holds 0 tokens, expected 256");
  for (const plan::StateMember *member : *group.members()) {
    if (!in_range(member->kind(), plan::StateKind::MAX))
      return refuse(cat("a state member is of kind ", int(member->kind()), ", the last kind is ", int(plan::StateKind::MAX)));
    const std::string name = cat("state ", plan::EnumNameStateKind(member->kind()), " of layer ", member->layer());
    const bool paged = member->kind() == plan::StateKind::latent || member->kind() == plan::StateKind::index;
    const bool draft = member->kind() == plan::StateKind::draft;
    if (!draft && (member->layer() < plan.model()->layer_begin() || member->layer() >= plan.model()->layer_end()))
      return refuse(cat(name, " is outside the plan's layers ", plan.model()->layer_begin(), " to ", plan.model()->layer_end()));
    if (const uint32_t expected = paged ? group.blocks() : group.slots(); !draft && member->units() != expected)
      return refuse(cat(name, " has ", member->units(), " units, the group has ", expected, paged ? " blocks" : " slots"));
    if (member->stage() >= plan.mesh()->pp())
      return refuse(cat(name, " belongs to stage ", member->stage(), " of ", plan.mesh()->pp()));
    if (member->arena() >= plan.arenas()->size())
      return refuse(cat(name, " names arena ", member->arena(), " of ", plan.arenas()->size()));
    const plan::Arena &arena = *plan.arenas()->Get(member->arena());
    if (arena.kind() != plan::ArenaKind::cache && arena.kind() != plan::ArenaKind::state)
      return refuse(cat(name, " is in arena ", quote(arena.name()->str()), " of kind ", plan::EnumNameArenaKind(arena.kind()),
                        ", expected cache or state"));
    const uint64_t size = arena.bytes();
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(member->unit_bytes(), uint64_t(member->units()), &bytes) || !fits(member->offset(), bytes, size))
      return refuse(cat(name, " has ", member->units(), " units of ", member->unit_bytes(), " bytes at offset ", member->offset(),
                        ", but its arena has ", size, " bytes"));
    if (!member->codes())
      continue;
    // A row: codes, a scale (latent: one for each 128 codes), and what follows of a latent row as bf16.
    const uint64_t row = member->unit_bytes() / group.block_tokens(), codes = member->codes();
    const bool index = member->kind() == plan::StateKind::index;
    const uint64_t coded = codes + (index ? 4 : (codes + 127) / 128 * 4);
    if (!paged || member->unit_bytes() % group.block_tokens() || (index ? row != coded : row < coded || (row - coded) % 2))
      return refuse(cat(name, " has units of ", member->unit_bytes(), " bytes, which do not hold ", group.block_tokens(),
                        " rows of ", codes, " codes with their scales"));
  }
  return {};
}

Result<void> memory(const plan::Plan &plan) {
  K31_TRY(arenas(plan));
  return state(plan);
}

} // namespace k31::check
