// The work of the host kernels with the region of an nn.row or nn.map: 16 columns at a time, once a phase.
//
// A phase adds up 16-lane contributions of its reductions over one group of columns; their lane sums, splat, follow the elements
// in the input of later phases.
#pragma once
#include "codegen/kernels/common/operand.h"
#include "codegen/kernels/nn/row.h"

namespace k31::kernels::row {

static_assert(kMaxSums >= kMaxOperands, "one array holds the outputs of any phase");
constexpr int64_t kMapColumns = 256; // columns of one unit of work of a map

template <int P> K31_INLINE void region(const float *in, float *out) {
  if constexpr (P == 0)
    k31_region_0(in, out);
  else if constexpr (P == 1)
    k31_region_1(in, out);
  else if constexpr (P == 2)
    k31_region_2(in, out);
  else if constexpr (P == 3)
    k31_region_3(in, out);
  else if constexpr (P == 4)
    k31_region_4(in, out);
  else
    k31_region_5(in, out);
}

K31_INLINE f32x16 first_lanes(f32x16 v, int n) {
  if (n == kLanes)
    return v;
  const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return (f32x16)((i32x16)v & (i32x16)(lane < n));
}

// Calls f(column, lanes) over [begin, end): full vectors first, then the rest.
template <class F> K31_INLINE void for_columns(int64_t begin, int64_t end, F f) {
  int64_t col = begin;
  for (; col + kLanes <= end; col += kLanes)
    f(col, kLanes);
  if (col < end)
    f(col, (int)(end - col));
}

// The arguments of the row op that another kernel goes on with; that kernel's Args give them, one by one.
template <class A, class C> K31_INLINE Args args_of(const A &of, const C &c, const int32_t *live) {
  Args out;
  out.live = live;
  K31_UNROLL for (int i = 0; i < c.row.inputs; ++i) out.tail[i] = of.input(c, i);
  K31_UNROLL for (int i = 0; i < c.row.outputs; ++i) out.tail[c.row.inputs + i] = of.output(c, i);
  return out;
}

// Of a kernel that gives its Config as the constant Of::config().
template <class Of> struct Groups {
  K31_INLINE void load_elements(const Args *args, int64_t row, int64_t col, int n, float *in) {
    const Config &c = Of::config();
    K31_UNROLL for (int i = 0; i < c.inputs; ++i) {
      Operand op{(OperandKind)c.kind[i], (DType)c.type[i], c.ld[i], c.length[i]};
      f32x16 v = load_operand(args->tail[i], op, c.cols, row, col, n);
      memcpy(in + i * kLanes, &v, sizeof v);
    }
  }

  // Reductions of the phases before P.
  template <int P> K31_INLINE int known_sums() {
    int known = 0;
    K31_UNROLL for (int p = 0; p < P; ++p) known += Of::config().sums[p];
    return known;
  }

  // Calls f(column, lanes, outputs of region P) over [begin, end). `sums` holds the sums of earlier phases.
  template <int P, class F>
  K31_INLINE void run_region(const Args *args, int64_t row, int64_t begin, int64_t end, const float *sums, F f) {
    for_columns(begin, end, [&](int64_t col, int n) __attribute__((always_inline)) {
      float in[(kMaxOperands + kMaxSums) * kLanes], out[kMaxSums * kLanes];
      load_elements(args, row, col, n, in);
      K31_UNROLL for (int s = 0; s < known_sums<P>(); ++s) {
        f32x16 v = splat(sums[s]);
        memcpy(in + (Of::config().inputs + s) * kLanes, &v, sizeof v);
      }
      region<P>(in, out);
      f(col, n, out);
    });
  }

  // One function a phase, not forced inline: a specialised kernel inlines those it calls, and a native build stays small.
  template <int P> static void reduce(const Args *args, int64_t row, int64_t begin, int64_t end, float *sums) {
    const Config &c = Of::config();
    f32x16 acc[kMaxSums];
    K31_UNROLL for (int s = 0; s < c.sums[P]; ++s) acc[s] = splat(0);
    run_region<P>(args, row, begin, end, sums, [&](int64_t /*col*/, int n, const float *out) __attribute__((always_inline)) {
      K31_UNROLL for (int s = 0; s < c.sums[P]; ++s) acc[s] += first_lanes(load_vector<f32x16>(out + s * kLanes), n);
    });
    K31_UNROLL for (int s = 0; s < c.sums[P]; ++s) sums[known_sums<P>() + s] = sum(acc[s]);
  }

  template <int P> static void results(const Args *args, int64_t row, int64_t begin, int64_t end, const float *sums) {
    const Config &c = Of::config();
    run_region<P>(args, row, begin, end, sums, [&](int64_t col, int n, const float *out) __attribute__((always_inline)) {
      K31_UNROLL for (int i = 0; i < c.outputs; ++i) store_part(
          args->tail[c.inputs + i], (DType)c.out_type[i], row * c.out_ld[i] + col, load_vector<f32x16>(out + i * kLanes), n);
    });
  }

  // Of one unit: a group of a reduction, or a part of a map's row.
  K31_INLINE int64_t columns() { return Of::config().phases ? Of::config().cols / Of::config().groups : kMapColumns; }

  // The unit that begins at column `begin`.
  K31_INLINE void group(const Args *args, int64_t row, int64_t begin) {
    const Config &c = Of::config();
    const int64_t end = begin + columns() < c.cols ? begin + columns() : c.cols;
    float sums[kMaxSums];
    if (c.phases > 0)
      reduce<0>(args, row, begin, end, sums);
    if (c.phases > 1)
      reduce<1>(args, row, begin, end, sums);
    if (c.phases > 2)
      reduce<2>(args, row, begin, end, sums);
    if (c.phases > 3)
      reduce<3>(args, row, begin, end, sums);
    switch (c.phases) {
    case 0:
      return results<0>(args, row, begin, end, sums);
    case 1:
      return results<1>(args, row, begin, end, sums);
    case 2:
      return results<2>(args, row, begin, end, sums);
    case 3:
      return results<3>(args, row, begin, end, sums);
    default:
      return results<4>(args, row, begin, end, sums);
    }
  }

  K31_INLINE void whole_row(const Args *args, int64_t row) {
    for (int64_t begin = 0; begin < Of::config().cols; begin += columns())
      group(args, row, begin);
  }
};

} // namespace k31::kernels::row
