#include "codegen/CudaCosts.h"

using namespace llvm;

namespace k31 {

std::string tileText(const kernels::ProductTile &tile) {
  constexpr const char *kForms[] = {"plain", "thin", "wide", "mapped"};
  const std::string text = formatv("{0} {1} x {2}", kForms[tile.form], tile.bm, tile.bn);
  return tile.form == kernels::kThin ? formatv("{0} by {1} warps", text, tile.block / 32).str() : text;
}

std::string costText(const kernels::LaunchCost &cost) {
  return formatv("memory {0:f1}, caches {1:f1} and products {2:f1} us at once, then {3:f1} us; {4:f1} us to launch",
                 cost.memory * 1e6, cost.caches * 1e6, cost.math * 1e6, cost.ends * 1e6, kernels::kLaunchSeconds * 1e6);
}

} // namespace k31
