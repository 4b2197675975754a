// moe.grouped_linear on CUDA, in the forms of common/product_tile.h; MXFP4 weights are read packed and decoded on the way
// to the tensor cores (moe/packed.cuh, moe/decoded.cuh). A block takes the y-th expert that has rows, so that empty experts cost
// nothing; blocks of the decoded form go on from tile to tile of all experts.
#pragma once
#include "codegen/kernels/common/product.cuh"
#include "codegen/kernels/common/thin.cuh"
#include "codegen/kernels/common/wide.cuh"
#include "codegen/kernels/moe/decoded.cuh"
#include "codegen/kernels/moe/grouped_linear.tile.h"
#include "codegen/kernels/moe/packed.cuh"

namespace k31::kernels::grouped_linear {

// The expert with `which` experts with rows before it, or -1. Each warp looks for itself.
template <Config c> K31_DEVICE int32_t find_expert(const int32_t *offsets, int32_t which) {
  int32_t found = -1;
#pragma unroll 4
  for (int first = 0; first < c.experts; first += 32) {
    int e = first + lane_id();
    uint32_t busy = __ballot_sync(kAllLanes, e < c.experts && offsets[e + 1] > offsets[e]);
    if (which >= 0 && which < __popc(busy))
      found = first + __fns(busy, 0, which + 1);
    which -= __popc(busy);
  }
  return found;
}

template <Config c, Tile t, class Region> struct Experts {
  static constexpr int32_t kCols = c.pair ? c.n / 2 : c.n;
  const Args &args;
  const int32_t *offsets = (const int32_t *)args.tail[c.mxfp4 ? 1 : 0];

  K31_DEVICE const uint8_t *scale() const { return (const uint8_t *)args.tail[0]; }
  K31_DEVICE void finish(int64_t row, int32_t col, float first, float second) const {
    if constexpr (c.epilogue) {
      float in[2] = {first, second}, result[1];
      Region::phase0(in, result);
      first = result[0];
    }
    store<c.out_type>(args.tail[c.mxfp4 ? 2 : 1], row * c.ld_out + col, first);
  }

  // Rows n0 .. n0 + bn of the expert's W; of its rows of x bm from the z-th on, and on in steps of the grid.
  K31_DEVICE void tiles(int32_t expert, int32_t n0) const {
    const int32_t begin = offsets[expert], rows = offsets[expert + 1] - begin;
    const int64_t w_row = (int64_t)expert * c.n; // of all experts' rows of W
    for (int32_t row0 = (int32_t)blockIdx.z * t.bm; row0 < rows; row0 += (int32_t)gridDim.z * t.bm) {
      const uint16_t *x = (const uint16_t *)args.x + (int64_t)(begin + row0) * c.ld_x;
      auto finish_row = [&](int32_t row, int32_t col, float sum, float second) { finish(begin + row0 + row, col, sum, second); };
      if constexpr (c.mxfp4) {
        const packed::Weights w{(const uint8_t *)args.w + w_row * (c.k / 2), scale() + w_row * (c.k / kScaleColumns)};
        packed::thin_tile<t, c.n, c.k, c.ld_x, c.pair>(x, rows - row0, w, n0, finish_row);
      } else {
        const uint16_t *w = (const uint16_t *)args.w + w_row * c.k;
        if constexpr (t.form == kThin)
          thin::tile<t, c.n, c.k, c.ld_x, c.pair>(x, rows - row0, w, n0, finish_row);
        else
          wide::tile<t, c.n, c.k, c.ld_x, c.pair>(x, rows - row0, wide::RowsOfW<t, c.n, c.k>{w}, n0, finish_row);
      }
    }
  }

  // The same by plain loops.
  K31_DEVICE void plain(int32_t expert, int32_t n0) const {
    const int32_t end = offsets[expert + 1];
    for (int64_t row0 = offsets[expert] + (int64_t)blockIdx.z * kPlainRows; row0 < end; row0 += (int64_t)gridDim.z * kPlainRows)
      for (int32_t first_n = n0; first_n < n0 + t.bn && first_n < c.n; first_n += kPlainCols)
        plain_tile<t.block, c.pair>(
            c.k, [&](int r, int k) { return row0 + r < end ? load<c.x_type>(args.x, (row0 + r) * c.ld_x + k) : 0.0f; },
            [&](int n, int k) {
              if (first_n + n >= c.n)
                return 0.0f;
              int64_t row = (int64_t)expert * c.n + first_n + n;
              if constexpr (c.mxfp4) {
                uint32_t byte = ((const uint8_t *)args.w)[row * (c.k / 2) + k / 2];
                return e2m1(k % 2 ? byte >> 4 : byte & 15) * e8m0(scale()[row * (c.k / kScaleColumns) + k / kScaleColumns]);
              } else {
                return load<c.w_type>(args.w, row * c.k + k);
              }
            },
            [&](int r, int n, float first, float second) {
              int32_t col = c.pair ? first_n / 2 + n : first_n + n;
              if (row0 + r < end && col < kCols)
                finish(row0 + r, col, first, second);
            });
  }
};

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  static_assert(t.form == kPlain || (tensor_cores_fit(c) && (t.form == kDecoded ? c.mxfp4 : !c.mxfp4 || t.form == kThin)),
                "a form for this Config");
  const Experts<c, t, Region> all{args};
  const bool aligned = t.form != kPlain && aligned16(args.x) && aligned16(args.w);
  if constexpr (t.form == kDecoded) { // blocks go on from tile to tile
    auto finish = [&](int32_t row, int32_t col, float sum, float second) { all.finish(row, col, sum, second); };
    if (aligned)
      return packed::decoded_tiles<t, c.experts, c.n, c.k, c.ld_x, c.pair>((const uint16_t *)args.x, all.offsets,
                                                                           {(const uint8_t *)args.w, all.scale()}, finish);
    for (int32_t expert = 0; expert < c.experts; ++expert)
      for (int32_t n0 = (int32_t)blockIdx.x * t.bn; n0 < c.n; n0 += (int32_t)gridDim.x * t.bn)
        all.plain(expert, n0);
  } else {
    const int32_t expert = find_expert<c>(all.offsets, blockIdx.y);
    if (expert < 0)
      return;
    if constexpr (t.form != kPlain)
      if (aligned)
        return all.tiles(expert, (int32_t)blockIdx.x * t.bn);
    all.plain(expert, (int32_t)blockIdx.x * t.bn);
  }
}

} // namespace k31::kernels::grouped_linear
