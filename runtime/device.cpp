#include "runtime/device.h"
#include "runtime/base/cat.h"
#include "runtime/cuda/device.h"
#include "runtime/host/device.h"
#include "runtime/plan/dtype.h"

namespace k31 {

Result<std::unique_ptr<Device>> open_device(const plan::Plan &plan, int threads, comm::Communicator &communicator) {
  const std::string_view target = plan.key()->target()->string_view();
  if (target != "cpu" && target != "sm_90a")
    return fail(Code::unsupported, "the plan is for target " + quote(target) +
                                       ", this runtime runs targets 'cpu' and 'sm_90a'; compile the plan for one of them");
  return target == "cpu" ? host::open_device(threads, communicator) : cuda::open_device(communicator);
}

bool runs_here(const plan::Entry &entry, const comm::Communicator &communicator) {
  return entry.stage() == communicator.coordinate(plan::MeshAxis::pp);
}

Result<void> check_range(uint32_t arena, uint64_t offset, uint64_t bytes, uint64_t size) {
  if (offset <= size && bytes <= size - offset)
    return {};
  return fail(Code::internal, cat("bytes ", offset, " to ", offset, " + ", bytes, " of arena ", arena, ", which has ", size));
}

Result<uint64_t> lone_collective(const plan::Entry &entry, const plan::Collective &c) {
  if (c.op() == plan::CollectiveOp::send || c.op() == plan::CollectiveOp::recv)
    return fail(Code::invalid_input, cat("entry ", quote(entry.name()->str()), ": ", plan::EnumNameCollectiveOp(c.op()),
                                         " to rank ", c.peer(), " of axis ", plan::EnumNameMeshAxis(c.axis()),
                                         ", but the mesh has one rank; the plan is wrong, compile it again"));
  return c.count() * bytes_of(c.dtype()); // Load has checked that source and destination hold them
}

} // namespace k31
