// Files of the checkpoint, stacks, and the placement of their rows.
#include "runtime/base/safetensors.h"
#include "runtime/plan/check.h"
#include "runtime/schema/shares.h"
#include "runtime/weights/placement.h"

namespace k31::check {

static Result<void> files(const plan::Plan &plan) {
  for (const plan::CheckpointFile *file : *plan.files())
    if (!is_plain_name(file->name()->string_view()))
      return refuse("the checkpoint file " + quote(file->name()->str()) + " is no plain file name");
  return {};
}

// Where the names of members come from: "{}" stands for the number.
static Result<void> members(const plan::WeightStack &stack, const std::string &name) {
  const std::string_view pattern = stack.pattern()->string_view();
  const size_t hole = pattern.find("{}");
  const bool one_hole = hole != pattern.npos && pattern.find("{}", hole + 2) == pattern.npos;
  const size_t listed = stack.members() ? stack.members()->size() : 0, count = listed ? listed : 1;
  if (listed == 0 ? hole != pattern.npos : !one_hole)
    return refuse(cat(name, " has ", listed, " numbered members, expected ", listed ? "one {}" : "no {}", " in its pattern"));
  for (size_t i = 1; i < listed; ++i)
    if (stack.members()->Get(i) <= stack.members()->Get(i - 1))
      return refuse(cat(name, " lists member ", stack.members()->Get(i), " after ", stack.members()->Get(i - 1),
                        ", expected ascending numbers"));
  if (stack.files()->size() != count || stack.offsets()->size() != count)
    return refuse(
        cat(name, " has ", count, " members, but ", stack.files()->size(), " files and ", stack.offsets()->size(), " offsets"));
  return {};
}

static Result<void> layout(const plan::WeightStack &stack, uint64_t bytes, const std::string &name) {
  const plan::Layout &l = *stack.layout();
  if (l.row_bytes() == 0 || bytes % l.row_bytes() != 0)
    return refuse(cat(name, " has ", bytes, " bytes a member, which rows of ", l.row_bytes(), " bytes do not divide"));
  const uint64_t rows = bytes / l.row_bytes();
  if (l.row_count() == 0 || !fits(l.row_begin(), l.row_count(), rows))
    return refuse(cat(name, " takes ", l.row_count(), " rows from row ", l.row_begin(), ", but a member has ", rows));
  if (l.byte_count() == 0 || !fits(l.byte_begin(), l.byte_count(), l.row_bytes()))
    return refuse(
        cat(name, " takes ", l.byte_count(), " bytes from byte ", l.byte_begin(), " of each row, but a row has ", l.row_bytes()));
  if (l.dest_row_bytes() < l.byte_count() && l.row_count() > 1)
    return refuse(cat(name, " places rows of ", l.byte_count(), " bytes every ", l.dest_row_bytes(), " bytes: they overlap"));
  if (l.group() == 0 || (l.row_count() > l.group() && l.group_stride() < l.group()))
    return refuse(cat(name, " places groups of ", l.group(), " rows every ", l.group_stride(), " rows: they overlap"));
  return {};
}

static Result<void> stack(const plan::Plan &plan, const plan::WeightStack &stack) {
  const std::string name = "weight " + quote(stack.pattern()->str());
  if (!aligned(*stack.shape()) || !aligned(*stack.offsets()))
    return refuse(name + " has numbers that are not aligned to their size");
  K31_TRY(members(stack, name));
  uint64_t bits = dtype_bits(stack.dtype()->string_view()), bytes = 0;
  if (bits == 0 || bits % 8 != 0)
    return refuse(cat(name, " has the dtype ", quote(stack.dtype()->str()), ", expected whole bytes: BF16, F32, U8"));
  if (!tensor_bytes(*stack.shape(), bits / 8, &bytes) || bytes == 0)
    return refuse(name + " has a shape of no bytes, or of more than 64 bits count");
  K31_TRY(layout(stack, bytes, name));

  for (uint32_t i = 0; i < stack.files()->size(); ++i) {
    if (stack.files()->Get(i) >= plan.files()->size())
      return refuse(cat(name, " is in file ", stack.files()->Get(i), " of ", plan.files()->size()));
    const plan::CheckpointFile &file = *plan.files()->Get(stack.files()->Get(i));
    if (!fits(stack.offsets()->Get(i), bytes, file.bytes()))
      return refuse(cat(name, " has ", bytes, " bytes at offset ", stack.offsets()->Get(i), " of ", quote(file.name()->str()),
                        ", which has ", file.bytes()));
  }

  if (stack.shard() &&
      (!in_range(stack.shard()->axis(), plan::MeshAxis::MAX) || !in_range(stack.shard()->of(), plan::ShardOf::MAX)))
    return refuse(name + " is split in a way that the schema does not have");
  if (stack.stage() >= plan.mesh()->pp())
    return refuse(cat(name, " belongs to stage ", stack.stage(), " of ", plan.mesh()->pp()));
  if (stack.arena() >= plan.arenas()->size() || plan.arenas()->Get(stack.arena())->kind() != plan::ArenaKind::weights)
    return refuse(cat(name, " goes to arena ", stack.arena(), ", which is no arena of kind weights"));
  const uint64_t size = plan.arenas()->Get(stack.arena())->bytes();
  const uint32_t held = plan::held_members(*plan.mesh(), stack);
  uint64_t extent = 0, last = 0;
  const bool counted = weights::dest_extent(*stack.layout(), &extent) &&
                       !__builtin_mul_overflow(stack.stride(), uint64_t(held - 1), &last) &&
                       !__builtin_add_overflow(last, stack.dest(), &last);
  if (!counted || !fits(last, extent, size))
    return refuse(cat(name, " ends outside its arena of ", size, " bytes: ", held, " members every ", stack.stride(),
                      " bytes from ", stack.dest()));
  return {};
}

Result<void> weights(const plan::Plan &plan) {
  K31_TRY(files(plan));
  for (const plan::WeightStack *entry : *plan.weights())
    K31_TRY(stack(plan, *entry));
  return overlaps(plan);
}

} // namespace k31::check
