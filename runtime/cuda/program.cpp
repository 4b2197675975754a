#include "runtime/cuda/program.h"
#include "runtime/base/cat.h"
#include "runtime/device.h"
#include "runtime/plan/dtype.h"
#include "runtime/plan/peers.h"
#include "runtime/schema/launches.h"

namespace k31::cuda {

// Pointers of the largest argument block: 4096 bytes, what any driver passes to a kernel.
static constexpr uint32_t kMaxArguments = 512;
static constexpr uint32_t kMapBytes = 128; // CUtensorMap

Program::Program(const Driver &driver, const plan::Plan &plan, const plan::Entry &entry, const Kernels &kernels,
                 std::span<const Memory> arenas, std::span<const Stream> streams, const comm::Communicator &ranks,
                 const Nccl *nccl)
    : driver(driver), plan(plan), entry(entry), kernels(kernels), arenas(arenas), streams(streams.first(entry.streams())),
      ranks(ranks), nccl(nccl) {
  inputs = ports(*entry.inputs());
  outputs = ports(*entry.outputs());
}

Program::~Program() {
  if (graph)
    driver.graph_exec_destroy(graph);
  for (Event event : events)
    driver.event_destroy(event);
}

std::vector<Port> Program::ports(const flatbuffers::Vector<flatbuffers::Offset<plan::Binding>> &bindings) const {
  std::vector<Port> list;
  for (const plan::Binding *binding : bindings) {
    list.push_back({binding->name()->string_view(), reinterpret_cast<std::byte *>(address(binding->arena(), binding->offset())),
                    bytes_of(*binding)});
  }
  return list;
}

std::string Program::where(const flatbuffers::String *label) const {
  return "entry " + quote(entry.name()->str()) + (label ? ", " + quote(label->str()) : std::string());
}

Result<void> Program::issue(const plan::Launch &launch, Stream stream, bool behind_launch) const {
  const uint64_t bytes = launch.maps() ? launch.maps_at() + uint64_t{launch.maps()->size()} * kMapBytes : 0;
  if (launch.args()->size() > kMaxArguments || bytes > sizeof(Address) * kMaxArguments)
    return fail(Code::unsupported,
                cat(where(launch.label()), ": ", launch.args()->size(), " arguments, a kernel takes ", kMaxArguments));
  // The kernel's Args may end with room for more pointers than this launch has: the block is as large as any.
  alignas(64) Address block[kMaxArguments] = {};
  for (uint32_t i = 0; i < launch.args()->size(); ++i)
    block[i] = address(*launch.args()->Get(i));
  if (const auto *maps = launch.maps())
    for (uint32_t i = 0; i < maps->size(); ++i)
      K31_TRY(encode(launch, *maps->Get(i), reinterpret_cast<std::byte *>(block) + launch.maps_at() + i * kMapBytes));
  void *parameters[] = {block};
  LaunchAttribute early{.id = kStartsEarly, .value = {1}};
  const bool starts_early = behind_launch && plan.kernels()->Get(launch.kernel())->starts_early();
  const LaunchConfig config{launch.grid_x(), launch.grid_y(), launch.grid_z(), launch.block_x(),      1, 1,
                            launch.smem(),   stream,          &early,          starts_early ? 1u : 0u};
  K31_CUDA(driver, launch(&config, kernels.function(launch.kernel()), parameters, nullptr),
           cat(where(launch.label()), ": kernel ", quote(plan.kernels()->Get(launch.kernel())->name()->str()), " with grid [",
               launch.grid_x(), ", ", launch.grid_y(), ", ", launch.grid_z(), "], ", launch.block_x(), " threads and ",
               launch.smem(), " bytes of shared memory cannot be launched"));
  return {};
}

Result<void> Program::encode(const plan::Launch &launch, const plan::TensorMap &map, void *to) const {
  const Address at = address(*launch.args()->Get(map.arg()));
  if (at % 16 != 0)
    return {};
  const int type = map.dtype() == plan::DType::bf16  ? kMapBf16
                   : map.dtype() == plan::DType::f32 ? kMapF32
                   : map.dtype() == plan::DType::i32 ? kMapI32
                                                     : kMapU8;
  const unsigned long long sizes[] = {map.columns(), map.rows()}, strides[] = {map.row_bytes()};
  const unsigned box[] = {map.box_columns(), map.box_rows()}, steps[] = {1, 1};
  K31_CUDA(driver,
           tensor_map(to, type, 2, reinterpret_cast<void *>(at), sizes, strides, box, steps, 0, kSwizzle128, kPromote256, 0),
           cat(where(launch.label()), ": a tensor map of ", map.rows(), " x ", map.columns(), " in boxes of ", map.box_rows(),
               " x ", map.box_columns(), " cannot be encoded"));
  return {};
}

Result<void> Program::copy(const plan::Slice &source, const plan::Slice &dest, uint64_t bytes, const flatbuffers::String *label,
                           Stream stream) const {
  if (bytes > 0 && address(source) != address(dest))
    K31_CUDA(driver, copy(address(dest), address(source), bytes, stream), where(label) + ": cannot copy");
  return {};
}

Result<void> Program::issue(const plan::Collective &c, Stream stream, bool behind_launch) const {
  if (by_peer(c, ranks))
    return issue(*c.launch(), stream, behind_launch);
  const comm::Group &group = ranks.group(c.axis());
  if (group.size() == 1) {
    K31_ASSIGN(const uint64_t bytes, lone_collective(entry, c));
    return copy(*c.source(), *c.dest(), bytes, c.label(), stream);
  }
  if (auto good = comm::check_collective(c, group); !good)
    return context(where(nullptr), std::move(good.error()));
  return nccl ? nccl->issue(c, address(*c.source()), address(*c.dest()), stream) : issue_alone(c, group, stream);
}

Result<void> Program::issue_alone(const plan::Collective &c, const comm::Group &group, Stream stream) const {
  using Op = plan::CollectiveOp;
  const uint64_t bytes = c.count() * bytes_of(c.dtype()), piece = bytes / group.size();
  const Address source = address(*c.source()), dest = address(*c.dest());
  auto put = [&](uint64_t to, uint64_t from, uint64_t size) -> Result<void> {
    if (size > 0 && dest + to != source + from)
      K31_CUDA(driver, copy(dest + to, source + from, size, stream), where(c.label()) + ": cannot copy");
    return {};
  };
  switch (c.op()) {
  case Op::all_gather:
    for (uint32_t i = 0; i < group.size(); ++i)
      K31_TRY(put(i * bytes, 0, bytes));
    return {};
  case Op::reduce_scatter:
    return put(0, group.rank() * piece, piece);
  case Op::dispatch:
  case Op::combine:
    for (uint32_t i = 0; i < group.size(); ++i)
      K31_TRY(put(i * piece, group.rank() * piece, piece));
    return {};
  case Op::all_reduce:
    return put(0, 0, bytes);
  default:
    return {};
  }
}

Result<void> Program::fork() const {
  const Event start = events[entry.events()];
  K31_CUDA(driver, event_record(start, streams[0]), where(nullptr) + ": cannot fork its streams");
  for (Stream stream : streams.subspan(1))
    K31_CUDA(driver, stream_wait(stream, start, 0), where(nullptr) + ": cannot fork its streams");
  return {};
}

Result<void> Program::join() const {
  for (size_t i = 1; i < streams.size(); ++i) {
    K31_CUDA(driver, event_record(events[entry.events() + i], streams[i]), where(nullptr) + ": cannot join its streams");
    K31_CUDA(driver, stream_wait(streams[0], events[entry.events() + i], 0), where(nullptr) + ": cannot join its streams");
  }
  return {};
}

Result<void> Program::issue() const {
  K31_TRY(fork());
  std::vector<bool> behind_launch(streams.size()); // for each stream: its last command is a launch
  for (uint32_t i = 0; i < entry.commands()->size(); ++i)
    switch (entry.commands_type()->GetEnum<plan::Command>(i)) {
    case plan::Command::Launch: {
      const plan::Launch &launch = *entry.commands()->GetAs<plan::Launch>(i);
      K31_TRY(issue(launch, streams[launch.stream()], behind_launch[launch.stream()]));
      behind_launch[launch.stream()] = true;
      break;
    }
    case plan::Command::Copy: {
      const plan::Copy &c = *entry.commands()->GetAs<plan::Copy>(i);
      K31_TRY(copy(*c.source(), *c.dest(), c.source()->bytes(), c.label(), streams[c.stream()]));
      behind_launch[c.stream()] = false;
      break;
    }
    case plan::Command::Collective: {
      const plan::Collective &c = *entry.commands()->GetAs<plan::Collective>(i);
      K31_TRY(issue(c, streams[c.stream()], behind_launch[c.stream()]));
      behind_launch[c.stream()] = by_peer(c, ranks);
      break;
    }
    case plan::Command::Record: {
      const plan::Record &c = *entry.commands()->GetAs<plan::Record>(i);
      K31_CUDA(driver, event_record(events[c.event()], streams[c.stream()]), where(nullptr) + ": cannot record an event");
      break;
    }
    case plan::Command::Wait: {
      const plan::Wait &c = *entry.commands()->GetAs<plan::Wait>(i);
      K31_CUDA(driver, stream_wait(streams[c.stream()], events[c.event()], 0), where(nullptr) + ": cannot wait for an event");
      behind_launch[c.stream()] = false;
      break;
    }
    default:
      break;
    }
  return join();
}

Result<void> Program::capture() {
  while (events.size() < entry.events() + streams.size()) {
    Event event = nullptr;
    K31_CUDA(driver, event_create(&event, kNoTiming), where(nullptr) + ": cannot create an event");
    events.push_back(event);
  }
  K31_CUDA(driver, capture_begin(streams[0], kCaptureThreadLocal), where(nullptr) + ": cannot start the capture of its graph");
  auto issued = issue();
  Graph captured = nullptr; // the capture ends also when a command failed; the first error counts
  const Status ended = driver.capture_end(streams[0], &captured);
  Status made = ended;
  if (issued && ended == 0)
    made = driver.graph_instantiate(&graph, captured, 0);
  if (captured)
    driver.graph_destroy(captured);
  if (!issued)
    return issued;
  if (made != 0)
    return cuda_error(driver, where(nullptr) + ": its commands make no CUDA graph", made);
  K31_CUDA(driver, graph_upload(graph, streams[0]), where(nullptr) + ": cannot put its graph on the GPU");
  return {};
}

Result<void> Program::replay() const {
  K31_CUDA(driver, graph_launch(graph, streams[0]), where(nullptr) + " cannot start");
  return {};
}

Result<void> Program::step(const Step &before, const Step &after, Event begin, Event end) const {
  const Stream stream = streams[0];
  const auto observed = [&](const plan::Launch &launch) -> Result<void> {
    K31_TRY(before(launch));
    K31_CUDA(driver, event_record(begin, stream), where(launch.label()) + ": cannot be timed");
    K31_TRY(issue(launch, stream, false));
    K31_CUDA(driver, event_record(end, stream), where(launch.label()) + ": cannot be timed");
    K31_CUDA(driver, stream_synchronize(stream),
             cat(where(launch.label()), ": kernel ", quote(plan.kernels()->Get(launch.kernel())->name()->str()), " failed"));
    return after(launch);
  };
  for (uint32_t i = 0; i < entry.commands()->size(); ++i)
    switch (entry.commands_type()->GetEnum<plan::Command>(i)) {
    case plan::Command::Launch:
      K31_TRY(observed(*entry.commands()->GetAs<plan::Launch>(i)));
      break;
    case plan::Command::Copy: {
      const plan::Copy &c = *entry.commands()->GetAs<plan::Copy>(i);
      K31_TRY(copy(*c.source(), *c.dest(), c.source()->bytes(), c.label(), stream));
      break;
    }
    case plan::Command::Collective: {
      const plan::Collective &c = *entry.commands()->GetAs<plan::Collective>(i);
      K31_TRY(plan::has_row(c) && by_peer(c, ranks) ? observed(*c.launch()) : issue(c, stream, false));
      break;
    }
    default:
      break; // one stream: order is given
    }
  return {};
}

} // namespace k31::cuda
