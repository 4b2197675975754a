// nn.linear on CUDA, in the plain, thin and mapped forms of common/product_tile.h.
#pragma once
#include "codegen/kernels/common/mapped.cuh"
#include "codegen/kernels/common/product.cuh"
#include "codegen/kernels/common/thin.cuh"
#include "codegen/kernels/common/wide.cuh"
#include "codegen/kernels/nn/linear.tile.h"

namespace k31::kernels::linear {

template <Config c, class Region> struct Epilogue {
  static constexpr int32_t kCols = c.pair ? c.n / 2 : c.n;
  const Args &args;

  // Without an epilogue: calls f(number of the output as a constant, column of it) for the output that has column `col` of the
  // sums.
  template <class F> K31_DEVICE static void at_output(int32_t col, F f) {
    for_index<c.outputs>([&](auto index) {
      constexpr int32_t kBegin = output_begin(c, decltype(index)::value), kEnd = kBegin + c.out_ld[decltype(index)::value];
      if (c.outputs == 1 || (col >= kBegin && col < kEnd))
        f(index, col - kBegin);
    });
  }

  // The outputs of one element, `second` being the other matrix's sum with `pair`.
  K31_DEVICE void operator()(int64_t row, int32_t col, float first, float second) const {
    if constexpr (!c.epilogue) {
      at_output(col, [&](auto index, int32_t at) {
        constexpr int I = decltype(index)::value;
        store<(DType)c.out_type[I]>(args.tail[c.extras + I], row * c.out_ld[I] + at, first);
      });
    } else {
      constexpr int kSums = c.pair ? 2 : 1;
      float in[kSums + c.extras], out[c.outputs];
      in[0] = first;
      if constexpr (c.pair)
        in[1] = second;
      for_index<c.extras>([&](auto index) {
        constexpr int I = decltype(index)::value;
        in[kSums + I] = load_operand<(OperandKind)c.extra_kind[I], (DType)c.extra_type[I]>(args.tail[I], c.extra_ld[I],
                                                                                           c.extra_cols[I], kCols, row, col);
      });
      Region::phase0(in, out);
      for_index<c.outputs>([&](auto index) {
        constexpr int I = decltype(index)::value;
        store<(DType)c.out_type[I]>(args.tail[c.extras + I], row * c.out_ld[I] + col, out[I]);
      });
    }
  }
  // The same for G pairs of neighbours, each at an even column and the next. All loads come before the first store, which the
  // compiler takes for one of what is loaded, and the chains of operations overlap.
  template <int G>
  K31_DEVICE void operator()(int64_t row, const int32_t (&col)[G], const float2 (&first)[G], const float2 (&second)[G]) const {
    if constexpr (!c.epilogue) {
#pragma unroll
      for (int i = 0; i < G; ++i) // outputs begin at even columns: both of a pair are in one
        at_output(col[i], [&](auto index, int32_t at) { put<decltype(index)::value>(row, at, first[i]); });
    } else {
      constexpr int kSums = c.pair ? 2 : 1;
      float in[2 * G][kSums + c.extras], out[2 * G][c.outputs];
#pragma unroll
      for (int i = 0; i < G; ++i) {
        in[2 * i][0] = first[i].x, in[2 * i + 1][0] = first[i].y;
        if constexpr (c.pair)
          in[2 * i][1] = second[i].x, in[2 * i + 1][1] = second[i].y;
        for_index<c.extras>([&](auto index) {
          constexpr int I = decltype(index)::value;
          const float2 v =
              load_operand_pair<(OperandKind)c.extra_kind[I], (DType)c.extra_type[I], c.extra_ld[I], c.extra_cols[I], kCols>(
                  args.tail[I], row, col[i]);
          in[2 * i][kSums + I] = v.x, in[2 * i + 1][kSums + I] = v.y;
        });
      }
#pragma unroll
      for (int i = 0; i < 2 * G; ++i)
        Region::phase0(in[i], out[i]);
#pragma unroll
      for (int i = 0; i < G; ++i)
        for_index<c.outputs>([&](auto index) {
          constexpr int I = decltype(index)::value;
          put<I>(row, col[i], make_float2(out[2 * i][I], out[2 * i + 1][I]));
        });
    }
  }

private:
  template <int I> K31_DEVICE void put(int64_t row, int32_t col, float2 v) const {
    constexpr DType T = (DType)c.out_type[I];
    void *out = args.tail[c.extras + I];
    const int64_t at = row * c.out_ld[I] + col;
    if constexpr (c.out_ld[I] % 2 == 0)
      store_pair<T>(out, at, v);
    else
      store<T>(out, at, v.x), store<T>(out, at + 1, v.y);
  }
};

template <Config c, Tile t, class Region> K31_DEVICE void plain(const Args &args, int32_t live) {
  constexpr int32_t kTilesN = (int32_t)ceil_div(c.n, kPlainCols);
  const Epilogue<c, Region> epilogue{args};
  for (int64_t tile = blockIdx.x; tile < ceil_div(live, kPlainRows) * kTilesN; tile += gridDim.x) {
    int64_t row0 = tile / kTilesN * kPlainRows;
    int32_t n0 = (int32_t)(tile % kTilesN) * kPlainCols;
    plain_tile<t.block, c.pair>(
        c.k, [&](int r, int k) { return row0 + r < live ? load<c.x_type>(args.x, (row0 + r) * c.ld_x + k) : 0.0f; },
        [&](int n, int k) { return n0 + n < c.n ? load<c.w_type>(args.w, (int64_t)(n0 + n) * c.k + k) : 0.0f; },
        [&](int r, int n, float first, float second) {
          int32_t col = c.pair ? n0 / 2 + n : n0 + n;
          if (row0 + r < live && col < Epilogue<c, Region>::kCols)
            epilogue(row0 + r, col, first, second);
        });
  }
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args, const EncodedMap *maps) {
  if constexpr (t.form == kMapped) {
    static_assert(tensor_cores_fit(c), "this Config needs the plain form");
    if (aligned16(args.x) && aligned16(args.w))
      return mapped::product<t, c.n, c.k, c.pair>(maps, args.live, Epilogue<c, Region>{args});
    if constexpr (t.ahead)
      wait_for_launches();
  }
  const int32_t live = *args.live;
  if constexpr (t.form == kThin) {
    static_assert(tensor_cores_fit(c), "this Config needs the plain form");
    if (aligned16(args.x) && aligned16(args.w)) {
      constexpr int32_t kTilesN = (int32_t)ceil_div(c.n, t.bn);
      const uint16_t *x = (const uint16_t *)args.x, *w = (const uint16_t *)args.w;
      const Epilogue<c, Region> epilogue{args};
      const int32_t tiles_m = (int32_t)ceil_div(live, t.bm);
      for (int64_t id = blockIdx.x; id < (int64_t)tiles_m * kTilesN; id += gridDim.x) {
        int32_t tile_m, tile_n;
        wide::place_of(id, tiles_m, kTilesN, tile_m, tile_n);
        const int32_t row0 = tile_m * t.bm, rows = live - row0, n0 = tile_n * t.bn;
        const uint16_t *x0 = x + (int64_t)row0 * c.ld_x;
        auto finish = [&](int32_t row, int32_t col, float first, float second) { epilogue(row0 + row, col, first, second); };
        thin::tile<t, c.n, c.k, c.ld_x, c.pair>(x0, rows, w, n0, finish);
      }
      return;
    }
  }
  plain<c, t, Region>(args, live);
}

} // namespace k31::kernels::linear
