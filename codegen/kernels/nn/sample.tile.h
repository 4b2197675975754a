// Launch choices of nn.sample on CUDA.
#pragma once
#include "codegen/kernels/common/tile.h"
#include "codegen/kernels/nn/sample.h"

namespace k31::kernels::sample {

constexpr int32_t kBins = 1024; // of one step of the search for the threshold; one a thread

struct Tile {
  int32_t block = kBins;

  constexpr int32_t threads() const { return block; }
  constexpr int32_t smem(const Config &) const { return 8 * (kBins + 4 * 32 + 8); }
  template <class F> static void fields(F &&f) { f("block", &Tile::block); }
};

constexpr Tile choose(const Config &) { return {}; }
constexpr const char *why(const Config &, const Tile &) {
  return "a block a row: its threads meet at each digit of the threshold";
}
constexpr Grid grid(const Config &c, const Tile &) { return {most(c.rows, 1)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; } // its pointer is not read

} // namespace k31::kernels::sample
