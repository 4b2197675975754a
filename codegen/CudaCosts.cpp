#include "codegen/CudaCosts.h"

using namespace llvm;

namespace k31 {

std::string tileText(const kernels::ProductTile &tile) {
  const std::string text = formatv("{0} {1} x {2}", kernels::kProductFormNames[tile.form], tile.bm, tile.bn);
  if (tile.form == kernels::kThin)
    return formatv("{0} by {1} warps", text, tile.block / 32);
  return tile.split > 1 ? formatv("{0} by clusters of {1}", text, tile.split).str() : text;
}

void keepCheapest(SmallVectorImpl<Candidate> &candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate &a, const Candidate &b) { return a.nanoseconds < b.nanoseconds; });
  if (candidates.size() > 8)
    candidates.resize(8);
}

std::string costText(const kernels::LaunchCost &cost) {
  return formatv("memory {0:f1}, caches {1:f1} and products {2:f1} us at once, then {3:f1} us; {4:f1} us to launch",
                 cost.memory * 1e6, cost.caches * 1e6, cost.math * 1e6, cost.ends * 1e6, kernels::kLaunchSeconds * 1e6);
}

} // namespace k31
