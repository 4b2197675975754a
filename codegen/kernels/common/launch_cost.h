// What a launch on one H200 takes, estimated from measured limits: the choice among the tiles of a product is the cheapest by
// this. Plain C++ for the compiler; device code never calls it. Figures: docs/performance.md.
#pragma once
#include "codegen/kernels/common/tile.h"

namespace k31::kernels {

constexpr double kLaunchSeconds = 2e-6;     // of a launch in a graph, until its blocks run, and of its end
constexpr double kMemoryBytes = 4.26e12;    // a second, from memory
constexpr double kCacheBytes = 78e9;        // a second, through the second-level cache into one multiprocessor
constexpr double kCachesBytes = 8.7e12;     // a second, out of the second-level cache to all multiprocessors
constexpr double kStageSeconds = 95e-9;     // of a stage of 64 columns for 64 rows: its products wait for those of the one before
constexpr double kStageBytes = 230e9;       // a second, of a stage's boxes beside that
constexpr double kWarpGroupFlops = 5.27e12; // a second, of wgmma on one multiprocessor: 695 TFLOP/s on all, which is cuBLAS's
constexpr double kWarpFlops = 3e12;         // a second, of products of a warp on one multiprocessor
constexpr double kPlainFlops = 35e9;        // a second, of plain fp32 loops on one multiprocessor that many blocks share
constexpr double kPlainByte = 14e-9; // seconds of a block alone for a byte of a column of x or W: it waits for each 32 columns
// MXFP4 codes a second that one multiprocessor decodes; with the products of eight rows of x by a warp, 3.3 TB/s packed on all.
constexpr double kDecodedWeights = 62e9;
// Of 256 rows of W in the decoded form, seconds of one column of K, and more for each row of x: 32 us for 48 rows and 3584
// columns.
constexpr double kDecodedColumn = 4.7e-9, kDecodedColumnOfRow = 0.093e-9;

// Seconds of what goes on at once, and of what nothing hides.
struct LaunchCost {
  double memory = 0; // each byte once
  double caches = 0; // the busiest multiprocessor's reads
  double math = 0;   // its operations
  double ends = 0;   // first copies, sums that meet, results

  constexpr double seconds() const {
    const double both = memory > caches ? memory : caches, longest = both > math ? both : math;
    return kLaunchSeconds + longest + (memory + caches + math - longest) / 32 + ends; // what is hidden shows a little
  }
};

// Tiles that fit a Config, in the order of preference among equals.
template <class Tile> struct Candidates {
  static constexpr int kMost = 72;
  int count = 0;
  Tile tile[kMost];
  constexpr void add(const Tile &t) { tile[count++] = t; }
};

// The cheapest of candidates(c) by cost(c, tile): both stand beside the Config.
template <class Config> constexpr auto cheapest(const Config &c) {
  const auto all = candidates(c);
  int best = 0;
  for (int i = 1; i < all.count; ++i)
    if (cost(c, all.tile[i]).seconds() < cost(c, all.tile[best]).seconds())
      best = i;
  return all.tile[best];
}

// Turns of all multiprocessors, each with one block, that so many blocks take.
constexpr double turns_of(int64_t blocks) { return (double)ceil_div(blocks, kMultiprocessors); }

} // namespace k31::kernels
