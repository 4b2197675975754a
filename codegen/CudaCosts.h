// Tiles of CUDA kernels and their estimated times in words.
#pragma once
#include "codegen/CudaKernels.h"
#include "codegen/kernels/common/product_tile.h"
#include "llvm/Support/FormatVariadic.h"

namespace k31 {

// "mapped 64 x 96": the form and the rows of x and of W that a block takes; "thin 8 x 16 by 4 warps"; "mapped 64 x 64 by clusters
// of 4".
std::string tileText(const kernels::ProductTile &tile);

// "memory 41.4, caches 26.8 and products 14.7 us at once, then 1.8 us; 2.0 us to launch"
std::string costText(const kernels::LaunchCost &cost);

// The eight of least time, in this order: what a reader takes in.
void keepCheapest(llvm::SmallVectorImpl<Candidate> &candidates);

// Notes the choice of `tile`: against the cheapest candidates where the kernel has a cost, else by the words of its rule. Every
// <op>.tile.h has one of the two.
template <class Config, class Tile> void compareTiles(const Config &config, const Tile &tile, CudaLaunch &launch) {
  const uint64_t blocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  const std::string size = llvm::formatv("{0} block{1} of {2} threads", blocks, blocks == 1 ? "" : "s", launch.block);
  if constexpr (requires { why(config, tile); }) {
    launch.choice = size, launch.reason = why(config, tile);
  } else {
    launch.choice = tileText(tile), launch.reason = size + ": " + costText(cost(config, tile));
    const auto all = candidates(config);
    for (int i = 0; i < all.count; ++i)
      launch.candidates.push_back({tileText(all.tile[i]), nanoseconds(cost(config, all.tile[i]).seconds())});
    keepCheapest(launch.candidates);
    if (all.count == 1)
      launch.reason += "; tensor cores take bf16 in rows of whole 16-byte words, 8 columns";
  }
}

} // namespace k31
