#include "codegen/CudaBackend.h"
#include "codegen/CudaKernels.h"
#include "codegen/CudaRegions.h"
#include "codegen/ObjectCache.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringExtras.h"
#include <atomic>
#include <map>

using namespace llvm;
using namespace mlir;

namespace k31 {

// Changes whenever the same input would give other code: part of every symbol.
static constexpr StringLiteral kGeneration = "cuda 1";

// Stands for the symbol while the symbol is not known yet.
static constexpr StringLiteral kAnyName = "k31_entry";

static std::string symbolOf(const CudaKernel &kernel, StringRef source, const Target &target, const Nvrtc &nvrtc) {
  const std::string version = std::to_string(nvrtc.major()) + "." + std::to_string(nvrtc.minor());
  SmallVector<StringRef> parts = {kGeneration, version, target.name(), source};
  for (const NvrtcHeader &header : cudaHeaders(kernel.name))
    parts.append({header.first, header.second});
  return symbolOf(parts);
}

static FailureOr<std::string> sourceOf(const CudaKernel &kernel, StringRef symbol) {
  FailureOr<std::string> regions = cudaRegions(kernel.regions);
  if (failed(regions))
    return failure();
  return cudaSource(kernel.name, kernel.config, kernel.tile, *regions, symbol, [&] { return emitError(kernel.loc); });
}

FailureOr<std::vector<CudaImage>> compileCudaKernels(MutableArrayRef<CudaKernel> kernels, const Target &target, StringRef cache,
                                                     CudaCompileStats *stats) {
  if (kernels.empty())
    return std::vector<CudaImage>();
  Location loc = kernels.front().loc;
  Expected<const Nvrtc *> nvrtc = Nvrtc::open();
  if (!nvrtc)
    return emitError(loc) << toString(nvrtc.takeError());
  Expected<ObjectCache> objects = ObjectCache::open(cache);
  if (!objects)
    return emitError(loc) << toString(objects.takeError());

  std::map<std::string, size_t> bySymbol;
  for (auto [i, kernel] : llvm::enumerate(kernels)) {
    FailureOr<std::string> source = sourceOf(kernel, kAnyName);
    if (failed(source))
      return failure();
    kernel.symbol = symbolOf(kernel, *source, target, **nvrtc);
    bySymbol.emplace(kernel.symbol, i);
  }
  std::vector<CudaImage> images;
  std::vector<const CudaKernel *> jobs;
  for (const auto &[symbol, i] : bySymbol) {
    images.push_back({symbol, {}});
    jobs.push_back(&kernels[i]);
  }

  std::atomic<int> made = 0;
  MLIRContext *context = loc.getContext();
  ParallelDiagnosticHandler order(context);
  LogicalResult result = failableParallelForEachN(context, 0, jobs.size(), [&](size_t i) -> LogicalResult {
    const CudaKernel &kernel = *jobs[i];
    if (std::optional<std::string> known = objects->load(kernel.symbol)) {
      images[i].code = std::move(*known);
      return success();
    }
    order.setOrderIDForThread(i);
    auto compile = [&]() -> LogicalResult {
      FailureOr<std::string> source = sourceOf(kernel, kernel.symbol);
      if (failed(source))
        return failure();
      Expected<std::string> cubin = (*nvrtc)->compile(*source, kernel.symbol + ".cu", target.name(), cudaHeaders(kernel.name));
      if (!cubin)
        return emitError(kernel.loc) << "kernel " << kernel.name << ": " << toString(cubin.takeError());
      images[i].code = std::move(*cubin);
      objects->store(kernel.symbol, images[i].code);
      ++made;
      return success();
    };
    LogicalResult one = compile();
    order.eraseOrderIDForThread();
    return one;
  });
  if (failed(result))
    return failure();
  objects->trim();
  if (stats)
    *stats = {made, static_cast<int>(jobs.size()) - made};
  return images;
}

} // namespace k31
