// What the CUDA kernels share: typed loads and stores, vectors of 16 bytes, operands of fused regions.
//
// Element types are template values, so that every branch on them is gone after compilation. Pointers of views may start at any
// column: vector paths ask `aligned16` once and have a scalar path beside them.
#pragma once
#include "codegen/kernels/common/ptx.cuh"
#include "codegen/kernels/common/row_operand.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels {

struct NoRegion {};

K31_DEVICE bool aligned16(const void *p) { return ((uint64_t)p & 15) == 0; }

template <DType T> K31_DEVICE const void *element(const void *p, int64_t i) { return (const char *)p + i * bytes_of_type(T); }
template <DType T> K31_DEVICE void *element(void *p, int64_t i) { return (char *)p + i * bytes_of_type(T); }

template <DType T> K31_DEVICE float load(const void *p, int64_t i) {
  static_assert(T == DType::f32 || T == DType::bf16, "values are fp32 or bf16");
  if constexpr (T == DType::bf16)
    return from_bf16(((const uint16_t *)p)[i]);
  else
    return ((const float *)p)[i];
}
template <DType T> K31_DEVICE void store(void *p, int64_t i, float v) {
  static_assert(T == DType::f32 || T == DType::bf16, "values are fp32 or bf16");
  if constexpr (T == DType::bf16)
    ((uint16_t *)p)[i] = to_bf16(v);
  else
    ((float *)p)[i] = v;
}

// V neighbouring values as raw words: V / 2 words of bf16 pairs or V words of fp32 (V even), or one value. With V > 1 the address
// is a multiple of the vector's bytes or of 16.
template <DType T, int V> struct Raw {
  static constexpr int kWords = T == DType::bf16 ? (V + 1) / 2 : V;
  uint32_t word[kWords];

  K31_DEVICE void load(const void *p, int64_t i) {
    const void *at = element<T>(p, i);
    if constexpr (T == DType::bf16 && V == 1) {
      word[0] = *(const uint16_t *)at;
    } else if constexpr (kWords % 4 == 0) {
#pragma unroll
      for (int w = 0; w < kWords; w += 4) {
        uint4 v = *(const uint4 *)((const uint32_t *)at + w);
        word[w] = v.x, word[w + 1] = v.y, word[w + 2] = v.z, word[w + 3] = v.w;
      }
    } else {
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        word[w] = ((const uint32_t *)at)[w];
    }
  }
  K31_DEVICE void store(void *p, int64_t i) const {
    void *at = element<T>(p, i);
    if constexpr (T == DType::bf16 && V == 1) {
      *(uint16_t *)at = (uint16_t)word[0];
    } else if constexpr (kWords % 4 == 0) {
#pragma unroll
      for (int w = 0; w < kWords; w += 4)
        *(uint4 *)((uint32_t *)at + w) = make_uint4(word[w], word[w + 1], word[w + 2], word[w + 3]);
    } else {
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        ((uint32_t *)at)[w] = word[w];
    }
  }
  K31_DEVICE float get(int v) const {
    if constexpr (T == DType::bf16)
      return v % 2 ? bf16_high(word[v / 2]) : bf16_low(word[v / 2]);
    else
      return __uint_as_float(word[v]);
  }
  K31_DEVICE void set(const float *values) {
    if constexpr (T == DType::bf16 && V == 1) {
      word[0] = to_bf16(values[0]);
    } else if constexpr (T == DType::bf16) {
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        word[w] = pack_bf16(values[2 * w], values[2 * w + 1]);
    } else {
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        word[w] = __float_as_uint(values[w]);
    }
  }
};

// One value of an operand of a fused region (row_operand.h) at (row, col) of a tile of `cols` columns. ld: elements between rows;
// length: values of a column or column_group operand.
template <OperandKind kind, DType T>
K31_DEVICE float load_operand(const void *p, int64_t ld, int32_t length, int32_t cols, int64_t row, int32_t col) {
  if constexpr (kind == OperandKind::element)
    return load<T>(p, row * ld + col);
  else if constexpr (kind == OperandKind::row_scalar)
    return load<T>(p, row * ld);
  else if constexpr (kind == OperandKind::column)
    return load<T>(p, length == cols ? col : col % length);
  else
    return load<T>(p, col / (cols / length));
}

// Values i (even) and i + 1, as one word where p allows it.
template <DType T> K31_DEVICE bool pairs_fit(const void *p) { return ((uint64_t)p & (2 * bytes_of_type(T) - 1)) == 0; }
template <DType T> K31_DEVICE float2 load_pair(const void *p, int64_t i) {
  if (!pairs_fit<T>(p))
    return make_float2(load<T>(p, i), load<T>(p, i + 1));
  if constexpr (T == DType::f32)
    return *(const float2 *)((const float *)p + i);
  const uint32_t word = *(const uint32_t *)((const uint16_t *)p + i);
  return make_float2(bf16_low(word), bf16_high(word));
}
template <DType T> K31_DEVICE void store_pair(void *p, int64_t i, float2 v) {
  if (!pairs_fit<T>(p))
    store<T>(p, i, v.x), store<T>(p, i + 1, v.y);
  else if constexpr (T == DType::f32)
    *(float2 *)((float *)p + i) = v;
  else
    *(uint32_t *)((uint16_t *)p + i) = pack_bf16(v.x, v.y);
}
// load_operand at columns col (even) and col + 1.
template <OperandKind kind, DType T, int64_t ld, int32_t length, int32_t cols>
K31_DEVICE float2 load_operand_pair(const void *p, int64_t row, int32_t col) {
  if constexpr (kind == OperandKind::element && ld % 2 == 0)
    return load_pair<T>(p, row * ld + col);
  if constexpr (kind == OperandKind::column && length % 2 == 0)
    return load_pair<T>(p, length == cols ? col : col % length);
  if constexpr (kind == OperandKind::row_scalar || (kind == OperandKind::column_group && cols / most(length, 1) % 2 == 0)) {
    const float v = load_operand<kind, T>(p, ld, length, cols, row, col); // one value, and what follows from it, for both
    return make_float2(v, v);
  }
  return make_float2(load_operand<kind, T>(p, ld, length, cols, row, col),
                     load_operand<kind, T>(p, ld, length, cols, row, col + 1));
}

// Calls f(Index<0>{}), ..., f(Index<N - 1>{}): a loop whose counter is a constant expression.
template <int I> struct Index {
  static constexpr int value = I;
};
template <int N, int I = 0, class F> K31_DEVICE void for_index(F &&f) {
  if constexpr (I < N) {
    f(Index<I>{});
    for_index<N, I + 1>(f);
  }
}

// Copies `count` values of T by `threads` threads, `thread` being one of them; 16 bytes at a time where both sides allow it.
template <DType T> K31_DEVICE void copy_row(void *to, const void *from, int32_t count, int thread, int threads) {
  constexpr int kPer = 16 / bytes_of_type(T);
  int32_t done = 0;
  if (aligned16(to) && aligned16(from)) {
    int32_t vectors = count / kPer;
    for (int32_t v = thread; v < vectors; v += threads)
      ((uint4 *)to)[v] = ((const uint4 *)from)[v];
    done = vectors * kPer;
  }
  for (int32_t i = done + thread; i < count; i += threads) {
    if constexpr (bytes_of_type(T) == 2)
      ((uint16_t *)to)[i] = ((const uint16_t *)from)[i];
    else if constexpr (bytes_of_type(T) == 1)
      ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    else
      ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
  }
}

// The same of `Count` values by one warp, with up to 16 vectors of a lane under way at once: one latency, where few rows move.
template <DType T, int32_t Count> K31_DEVICE void copy_row_at_once(void *to, const void *from, int lane) {
  constexpr int kVectors = Count * bytes_of_type(T) / 16, kAhead = least(ceil_div(kVectors, 32), 16);
  if (Count * bytes_of_type(T) % 16 != 0 || !aligned16(to) || !aligned16(from))
    return copy_row<T>(to, from, Count, lane, 32);
  if constexpr (kAhead > 0) {
    for (int first = lane; first < kVectors; first += 32 * kAhead) {
      uint4 v[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        if (first + 32 * i < kVectors)
          v[i] = ((const uint4 *)from)[first + 32 * i];
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        if (first + 32 * i < kVectors)
          ((uint4 *)to)[first + 32 * i] = v[i];
    }
  }
}

} // namespace k31::kernels
