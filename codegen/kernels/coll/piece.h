// A piece: what one rank sends another of its rows. 16 bytes with the number of rows (int32), then each row with its choices: ids
// int32 [top_k], weights float [top_k], values [cols], filled up to a multiple of 16 bytes. A piece has room for all rows that a
// rank can have, but only those that go there are in it, without gaps.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels {

struct PieceForm {
  int32_t capacity; // rows that it has room for
  int32_t cols;     // values of a row
  int32_t top_k;    // choices of a row
  int32_t value;    // bytes of a value

  static constexpr int32_t kUnit = 16;
  constexpr int64_t row_bytes() const { return (8 * (int64_t)top_k + (int64_t)cols * value + kUnit - 1) / kUnit * kUnit; }
  constexpr int64_t bytes() const { return kUnit + capacity * row_bytes(); }
  constexpr int32_t units(int32_t rows) const { return (int32_t)(1 + rows * row_bytes() / kUnit); } // that hold rows

  template <class P> constexpr auto count(P *pieces, int64_t piece) const { return at(pieces, piece * bytes()); }
  template <class P> constexpr auto ids(P *pieces, int64_t piece, int64_t row) const {
    return at(pieces, piece * bytes() + kUnit + row * row_bytes());
  }
  template <class P> constexpr auto weights(P *pieces, int64_t piece, int64_t row) const {
    return ids(pieces, piece, row) + 4 * top_k;
  }
  template <class P> constexpr auto values(P *pieces, int64_t piece, int64_t row) const {
    return ids(pieces, piece, row) + 8 * top_k;
  }

private:
  static constexpr const char *at(const void *pieces, int64_t byte) { return (const char *)pieces + byte; }
  static constexpr char *at(void *pieces, int64_t byte) { return (char *)pieces + byte; }
};

} // namespace k31::kernels
