#include "runtime/cuda/mirror.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <sys/mman.h>

namespace k31::cuda {

Mirror::~Mirror() {
  for (size_t i = 0; i < bases.size(); ++i)
    munmap(bases[i], std::max<uint64_t>(plan->arenas()->Get(uint32_t(i))->bytes(), 1));
}

Result<void> Mirror::reserve(const Driver &with, const plan::Plan &of, std::span<const Memory> memory) {
  driver = &with, plan = &of, arenas = memory;
  for (const plan::Arena *arena : *of.arenas()) {
    void *base = mmap(nullptr, std::max<uint64_t>(arena->bytes(), 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return fail(Code::out_of_memory, cat("no addresses for ", arena->bytes(), " bytes of the host's copy of arena ",
                                           quote(arena->name()->str()), "; observe a smaller plan"));
    bases.push_back(static_cast<std::byte *>(base));
  }
  return {};
}

bool Mirror::copied(const plan::Launch &launch, uint32_t argument, Shown shown) const {
  const plan::Slice &slice = *launch.args()->Get(argument);
  const plan::ArenaKind kind = plan->arenas()->Get(slice.arena())->kind();
  if (kind == plan::ArenaKind::weights || kind == plan::ArenaKind::shared || slice.bytes() == 0) // peers write to shared ones
    return false;
  if (shown == Shown::all)
    return true;
  if (kind == plan::ArenaKind::cache || kind == plan::ArenaKind::state)
    return false;
  const auto *operands = plan->kernels()->Get(launch.kernel())->operands();
  if (shown == Shown::activations || !operands || argument >= operands->size()) // a plan without operands tells no types
    return true;
  return operands->Get(argument)->dtype() == plan::DType::i32 && operands->Get(argument)->columns() == 1;
}

std::span<const std::span<const std::byte>> Mirror::take(const plan::Launch &launch, Shown shown, Stream stream,
                                                         Result<void> &result) {
  const auto copy = [&](const plan::Slice &slice) -> Result<void> {
    K31_CUDA(
        (*driver),
        copy_out(bases[slice.arena()] + slice.offset(), arenas[slice.arena()].address() + slice.offset(), slice.bytes(), stream),
        "cannot copy an argument from the GPU");
    return {};
  };
  args.clear();
  for (uint32_t i = 0; i < launch.args()->size(); ++i) {
    const plan::Slice &slice = *launch.args()->Get(i);
    if (result && copied(launch, i, shown))
      result = copy(slice);
    args.emplace_back(bases[slice.arena()] + slice.offset(), slice.bytes());
  }
  if (const Status status = result ? driver->stream_synchronize(stream) : 0)
    result = cuda_error(*driver, "cannot copy arguments from the GPU", status);
  return args;
}

Result<void> Mirror::give_back(const plan::Launch &launch, Shown shown, Stream stream) const {
  for (uint32_t i = 0; i < launch.args()->size(); ++i)
    if (const plan::Slice &slice = *launch.args()->Get(i); copied(launch, i, shown))
      K31_CUDA(
          (*driver),
          copy_in(arenas[slice.arena()].address() + slice.offset(), bases[slice.arena()] + slice.offset(), slice.bytes(), stream),
          "cannot copy an argument to the GPU");
  K31_CUDA((*driver), stream_synchronize(stream), "cannot copy arguments to the GPU");
  return {};
}

} // namespace k31::cuda
