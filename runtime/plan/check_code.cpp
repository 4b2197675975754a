// Images, kernels and commands.
#include "runtime/plan/check.h"
#include "runtime/schema/launches.h"
#include "runtime/schema/peers.h"
#include "runtime/schema/shares.h"

namespace k31::check {

Result<void> code(const plan::Plan &plan) {
  for (uint32_t i = 0; i < plan.images()->size(); ++i)
    if (plan.images()->Get(i)->code()->size() == 0)
      return refuse(cat("image ", i, " holds no code"));
  for (const plan::Kernel *kernel : *plan.kernels()) {
    const std::string name = "kernel " + quote(kernel->name()->str());
    if (kernel->symbol()->size() == 0)
      return refuse(name + " has no symbol");
    if (kernel->images()->size() == 0)
      return refuse(name + " has no image");
    if (kernel->operands())
      for (const plan::Operand *operand : *kernel->operands())
        if (!in_range(operand->dtype(), plan::DType::MAX) || operand->columns() == 0)
          return refuse(cat(name, " has an operand of type ", int(operand->dtype()), " with ", operand->columns(),
                            " columns, the last type is ", int(plan::DType::MAX), " and rows are not empty"));
    for (uint32_t image : *kernel->images())
      if (image >= plan.images()->size())
        return refuse(cat(name, " is in image ", image, " of ", plan.images()->size()));
  }
  for (uint32_t i = 0; plan.notes() && i < plan.notes()->size(); ++i) {
    const plan::Note &note = *plan.notes()->Get(i);
    bool known = !note.candidates() || note.candidates()->size() == 0;
    for (uint32_t c = 0; note.candidates() && c < note.candidates()->size(); ++c) {
      known |= note.candidates()->Get(c)->choice()->string_view() == note.choice()->string_view();
      if (note.candidates()->Get(c)->nanoseconds() > INT64_MAX)
        return refuse(cat("note ", i, " has a candidate of ", note.candidates()->Get(c)->nanoseconds(), " ns"));
    }
    if (!known)
      return refuse(cat("note ", i, " chose ", quote(note.choice()->str()), ", which is none of its candidates"));
  }
  return {};
}

Result<void> notes(const plan::Plan &plan, const flatbuffers::Vector<uint32_t> *list, const std::string &where) {
  const uint32_t count = plan.notes() ? plan.notes()->size() : 0;
  if (list && list->size() > kMaxNotes)
    return refuse(cat(where, ": ", list->size(), " notes, at most ", kMaxNotes, " are possible"));
  for (uint32_t i = 0; list && i < list->size(); ++i)
    if (list->Get(i) >= count)
      return refuse(cat(where, ": note ", list->Get(i), " of ", count));
  return {};
}

namespace {

// Checks of one command; `where` names it in messages.
struct Checker {
  const plan::Plan &plan;
  const plan::Entry &entry;
  std::vector<bool> &recorded;
  std::string_view label;
  const plan::Slice *area = nullptr; // of the collective at hand

  std::string where() const {
    return "entry " + quote(entry.name()->str()) + (label.empty() ? std::string() : ", " + quote(label));
  }

  void take_label(const flatbuffers::String *text) { label = text ? text->string_view() : std::string_view(); }

  Result<void> stream(uint32_t number) const {
    return number < entry.streams() ? Result<void>() : refuse(cat(where(), ": stream ", number, " of ", entry.streams()));
  }

  Result<void> slice(const plan::Slice &s, const char *what, uint32_t index, bool writes) const {
    const uint32_t count = plan.arenas()->size();
    if (s.arena() >= count)
      return refuse(cat(where(), ": ", what, " ", index, " is in arena ", s.arena(), " of ", count));
    const plan::Arena &arena = *plan.arenas()->Get(s.arena());
    if (!fits(s.offset(), s.bytes(), arena.bytes()))
      return refuse(cat(where(), ": ", what, " ", index, " has ", s.bytes(), " bytes at offset ", s.offset(), " of arena ",
                        quote(arena.name()->str()), ", which has ", arena.bytes()));
    if (!in_range(s.access(), plan::Access::MAX))
      return refuse(
          cat(where(), ": ", what, " ", index, " has access ", int(s.access()), ", the last kind is ", int(plan::Access::MAX)));
    if ((writes || s.access() != plan::Access::read) && arena.kind() == plan::ArenaKind::weights)
      return refuse(cat(where(), ": ", what, " ", index, " writes to the weights"));
    if (arena.kind() == plan::ArenaKind::shared && &s != area)
      return refuse(cat(where(), ": ", what, " ", index, " is in arena ", quote(arena.name()->str()),
                        " of kind shared, in which only areas of collectives by peer lie"));
    return {};
  }

  // No two results of a launch are on the same bytes: its tasks write them in no order.
  Result<void> results_apart(const plan::Launch &launch) const {
    for (uint32_t i = 0; i < launch.args()->size(); ++i)
      for (uint32_t j = 0; j < i; ++j) {
        const plan::Slice &a = *launch.args()->Get(j), &b = *launch.args()->Get(i);
        if (a.access() != plan::Access::read && b.access() != plan::Access::read && a.arena() == b.arena() &&
            a.offset() < b.offset() + b.bytes() && b.offset() < a.offset() + a.bytes())
          return refuse(cat(where(), ": arguments ", j, " and ", i, " are both written and on the same bytes of arena ",
                            quote(plan.arenas()->Get(a.arena())->name()->str()), ": ", a.offset(), " to ", a.offset() + a.bytes(),
                            " and ", b.offset(), " to ", b.offset() + b.bytes()));
      }
    return {};
  }

  // The matrix lies in its argument.
  Result<void> tensor_map(const plan::Launch &launch, const plan::TensorMap &map) const {
    if (map.arg() >= launch.args()->size())
      return refuse(cat(where(), ": a tensor map of argument ", map.arg(), " of ", launch.args()->size()));
    if (!in_range(map.dtype(), plan::DType::MAX) || map.rows() == 0 || map.columns() == 0 || map.box_rows() == 0 ||
        map.box_columns() == 0)
      return refuse(where() + ": a tensor map without a type, rows or columns");
    uint64_t row = 0, last = 0, end = 0; // bytes of a row, up to the last row, up to its end
    if (__builtin_mul_overflow(map.columns(), bytes_of(map.dtype()), &row) ||
        __builtin_mul_overflow(map.rows() - 1, map.row_bytes(), &last) || __builtin_add_overflow(last, row, &end) ||
        end > launch.args()->Get(map.arg())->bytes())
      return refuse(cat(where(), ": a tensor map of ", map.rows(), " rows of ", map.columns(), " elements, ", map.row_bytes(),
                        " bytes apart, does not lie in argument ", map.arg(), " of ", launch.args()->Get(map.arg())->bytes(),
                        " bytes"));
    return {};
  }

  Result<void> operator()(const plan::Launch &launch) {
    take_label(launch.label());
    if (launch.kernel() >= plan.kernels()->size())
      return refuse(cat(where(), ": kernel ", launch.kernel(), " of ", plan.kernels()->size()));
    const plan::Kernel &kernel = *plan.kernels()->Get(launch.kernel());
    if (kernel.operands() && kernel.operands()->size() != launch.args()->size())
      return refuse(cat(where(), ": ", launch.args()->size(), " arguments for kernel ", quote(kernel.name()->str()),
                        ", which has ", kernel.operands()->size(), " operands"));
    K31_TRY(stream(launch.stream()));
    K31_TRY(notes(plan, launch.notes(), where()));
    if (launch.grid_x() == 0 || launch.grid_y() == 0 || launch.grid_z() == 0 || launch.block_x() == 0)
      return refuse(cat(where(), ": grid [", launch.grid_x(), ", ", launch.grid_y(), ", ", launch.grid_z(), "] block ",
                        launch.block_x(), ", all must be above 0"));
    if (plan.key()->target()->string_view() == "cpu" && (launch.grid_y() != 1 || launch.grid_z() != 1))
      return refuse(cat(where(), ": grid [", launch.grid_x(), ", ", launch.grid_y(), ", ", launch.grid_z(),
                        "], host launches have one dimension"));
    for (uint32_t i = 0; i < launch.args()->size(); ++i)
      K31_TRY(slice(*launch.args()->Get(i), "argument", i, false));
    K31_TRY(results_apart(launch));
    if (!launch.maps())
      return {};
    if (launch.maps_at() % 64 != 0 || launch.maps_at() / 8 < launch.args()->size())
      return refuse(cat(where(), ": tensor maps at byte ", launch.maps_at(), ", expected a multiple of 64 behind ",
                        launch.args()->size(), " arguments"));
    for (const plan::TensorMap *map : *launch.maps())
      K31_TRY(tensor_map(launch, *map));
    return {};
  }

  Result<void> operator()(const plan::Collective &c) {
    take_label(c.label());
    if (!in_range(c.op(), plan::CollectiveOp::MAX) || !in_range(c.axis(), plan::MeshAxis::MAX) ||
        !in_range(c.transport(), plan::Transport::MAX) || !in_range(c.dtype(), plan::DType::MAX))
      return refuse(where() + ": a collective has an operation, axis, transport or type that the schema does not have");
    K31_TRY(stream(c.stream()));
    K31_TRY(notes(plan, c.notes(), where()));
    K31_TRY(slice(*c.source(), "source", 0, false));
    K31_TRY(slice(*c.dest(), "destination", 0, true));
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(c.count(), bytes_of(c.dtype()), &bytes) || bytes > c.source()->bytes())
      return refuse(cat(where(), ": ", c.count(), " elements of ", plan::EnumNameDType(c.dtype()), " do not fit a source of ",
                        c.source()->bytes(), " bytes"));
    if (const uint64_t n = plan::ranks_along(*plan.mesh(), c.axis()); shared_out(c.op()) && c.count() % n != 0)
      return refuse(cat(where(), ": ", plan::EnumNameCollectiveOp(c.op()), " of ", c.count(), " elements over ", n, " ranks of ",
                        plan::EnumNameMeshAxis(c.axis()), ", which do not divide them"));
    if (const uint64_t n = plan::ranks_along(*plan.mesh(), c.axis()); to_peer(c.op()) && n > 1 && c.peer() >= n)
      return refuse(cat(where(), ": ", plan::EnumNameCollectiveOp(c.op()), " to rank ", c.peer(), " of axis ",
                        plan::EnumNameMeshAxis(c.axis()), ", which has ", n));
    if (const uint64_t needed = received(c, bytes); needed > c.dest()->bytes())
      return refuse(cat(where(), ": ", plan::EnumNameCollectiveOp(c.op()), " of ", bytes, " bytes over ",
                        plan::EnumNameMeshAxis(c.axis()), " gives ", needed, " bytes to a destination of ", c.dest()->bytes()));
    K31_TRY(live_pieces(c));
    return by_peer(c);
  }

  // The kernel of a collective by peer: source, live, destination, of a sum what the row op on it reads and writes, and an area.
  Result<void> by_peer(const plan::Collective &c) {
    const plan::Launch *launch = c.launch();
    if ((c.transport() == plan::Transport::peer) != (launch != nullptr))
      return refuse(cat(where(), ": a collective by ", plan::EnumNameTransport(c.transport()), launch ? " with" : " without",
                        " a launch; those by peer have one"));
    if (!launch)
      return {};
    const std::string_view own = label;
    if (launch->args()->size() > 0)
      area = launch->args()->Get(launch->args()->size() - 1);
    K31_TRY((*this)(*launch));
    label = own;
    std::vector<const plan::Slice *> expected = {c.source(), c.dest()};
    if (c.live())
      expected.insert(expected.begin() + 1, c.live());
    bool same = launch->args()->size() > expected.size() && launch->stream() == c.stream();
    for (uint32_t i = 0; same && i < expected.size(); ++i) {
      const plan::Slice &arg = *launch->args()->Get(i);
      same = arg.arena() == expected[i]->arena() && arg.offset() == expected[i]->offset() && arg.bytes() == expected[i]->bytes();
    }
    if (!same)
      return refuse(
          cat(where(), ": the launch of a collective by peer works on other bytes, or on another stream, than the collective"));
    const uint64_t ranks = plan::ranks_along(*plan.mesh(), c.axis());
    if (plan::has_row(c) &&
        (ranks < 2 || (c.op() != plan::CollectiveOp::all_reduce && c.op() != plan::CollectiveOp::reduce_scatter)))
      return refuse(cat(where(), ": the launch of ", plan::EnumNameCollectiveOp(c.op()), " by peer over ", ranks, " ranks has ",
                        launch->args()->size(), " arguments, expected ", expected.size() + 1,
                        "; those of sums over two ranks or more may have others in front of the area"));
    if (plan.arenas()->Get(area->arena())->kind() != plan::ArenaKind::shared || area->bytes() < sizeof(plan::PeerTable) ||
        area->offset() % alignof(plan::PeerTable) != 0 || ranks > plan::kMaxPeers)
      return refuse(cat(where(), ": a collective by peer over ", ranks, " ranks with an area of ", area->bytes(),
                        " bytes at offset ", area->offset(), ", expected at most ", plan::kMaxPeers, " ranks and ",
                        sizeof(plan::PeerTable), " bytes or more of an arena of kind shared, at a multiple of ",
                        alignof(plan::PeerTable)));
    return {};
  }

  // The counts of live units in the pieces of a dispatch or combine.
  Result<void> live_pieces(const plan::Collective &c) {
    if (!c.live())
      return {};
    if (c.op() != plan::CollectiveOp::dispatch && c.op() != plan::CollectiveOp::combine)
      return refuse(
          cat(where(), ": ", plan::EnumNameCollectiveOp(c.op()), " has counts of live pieces; dispatch and combine do"));
    K31_TRY(slice(*c.live(), "counts of live pieces", 0, false));
    const uint64_t n = plan::ranks_along(*plan.mesh(), c.axis());
    if (c.live()->bytes() / sizeof(int32_t) < n || c.live_unit() == 0 || c.live()->offset() % sizeof(int32_t) != 0)
      return refuse(cat(where(), ": ", c.live()->bytes(), " bytes of counts at offset ", c.live()->offset(), " in units of ",
                        c.live_unit(), " bytes for the pieces of ", n, " ranks, expected ", n * sizeof(int32_t),
                        " bytes at an offset that is a multiple of ", sizeof(int32_t), ", and a unit of 1 or more"));
    return {};
  }

  // Each rank gets, or gives, an equal piece.
  static bool shared_out(plan::CollectiveOp op) {
    return op == plan::CollectiveOp::reduce_scatter || op == plan::CollectiveOp::dispatch || op == plan::CollectiveOp::combine;
  }
  static bool to_peer(plan::CollectiveOp op) { return op == plan::CollectiveOp::send || op == plan::CollectiveOp::recv; }

  // Bytes that a collective writes to its destination at least, of a source of `bytes`. At most 2^47 * 2^16.
  uint64_t received(const plan::Collective &c, uint64_t bytes) const {
    const uint64_t n = plan::ranks_along(*plan.mesh(), c.axis());
    switch (c.op()) {
    case plan::CollectiveOp::all_gather:
      return bytes * n;
    case plan::CollectiveOp::reduce_scatter:
      return (bytes + n - 1) / n;
    case plan::CollectiveOp::send:
      return 0;
    default:
      return bytes;
    }
  }

  Result<void> operator()(const plan::Copy &copy) {
    take_label(copy.label());
    K31_TRY(stream(copy.stream()));
    K31_TRY(slice(*copy.source(), "source", 0, false));
    K31_TRY(slice(*copy.dest(), "destination", 0, true));
    if (copy.source()->bytes() != copy.dest()->bytes())
      return refuse(cat(where(), ": a copy of ", copy.source()->bytes(), " bytes to ", copy.dest()->bytes()));
    return {};
  }

  Result<void> event(uint32_t number) const {
    return number < entry.events() ? Result<void>() : refuse(cat(where(), ": event ", number, " of ", entry.events()));
  }
  Result<void> operator()(const plan::Record &record) {
    K31_TRY(event(record.event()));
    recorded[record.event()] = true;
    return stream(record.stream());
  }
  Result<void> operator()(const plan::Wait &wait) {
    K31_TRY(event(wait.event()));
    if (!recorded[wait.event()])
      return refuse(cat(where(), ": a wait for event ", wait.event(), ", which no earlier command records"));
    return stream(wait.stream());
  }
};

} // namespace

Result<void> command(const plan::Plan &plan, const plan::Entry &entry, plan::Command type, const void *command,
                     std::vector<bool> &recorded) {
  Checker checker{plan, entry, recorded, {}};
  switch (type) {
  case plan::Command::Launch:
    return checker(*static_cast<const plan::Launch *>(command));
  case plan::Command::Collective:
    return checker(*static_cast<const plan::Collective *>(command));
  case plan::Command::Copy:
    return checker(*static_cast<const plan::Copy *>(command));
  case plan::Command::Record:
    return checker(*static_cast<const plan::Record *>(command));
  case plan::Command::Wait:
    return checker(*static_cast<const plan::Wait *>(command));
  default:
    return refuse(cat(checker.where(), ": a command of kind ", int(type), ", the last kind is ", int(plan::Command::MAX)));
  }
}

} // namespace k31::check
