// The rows of all pieces that came (piece.h), each at its place: row i of piece s at s * capacity + i. live[s] is their number.
#pragma once
#include "codegen/kernels/coll/piece.h"

namespace k31::kernels::unpack {

struct Config {
  int32_t rows = 0;     // size * capacity
  int32_t capacity = 0; // rows that a piece has room for
  int32_t cols = 0;     // values of a row
  int32_t top_k = 0;    // choices of a row
  int32_t size = 1;     // pieces
  DType type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("capacity", &Config::capacity), f("cols", &Config::cols), f("top_k", &Config::top_k),
        f("size", &Config::size), f("type", &Config::type);
  }
  constexpr PieceForm form() const { return {capacity, cols, top_k, type == DType::bf16 ? 2 : 4}; }
};

struct Args {
  const void *pieces; // u8 [size, bytes]
  void *out;          // [size * capacity, cols]
  int32_t *ids;       // [size * capacity, top_k]
  float *weights;     // [size * capacity, top_k]
  int32_t *live;      // [size]
};

} // namespace k31::kernels::unpack
