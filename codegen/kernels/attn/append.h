// Writes one row a token into a paged cache: row of position p goes to block_table[p / 256], offset p mod 256.
//
// A cache of codes (f8, i8: common/fp8.h) takes all codes of a row at once, with their scales; f8 also columns behind them.
#pragma once
#include "codegen/kernels/common/fp8.h"

namespace k31::kernels::append {

struct Config {
  int32_t rows = 0;  // T, capacity
  int32_t cols = 0;  // values of a row that are written
  int32_t begin = 0; // first column of the cache row
  int32_t width = 0; // values of a cache row
  int32_t ld_x = 0;
  int32_t blocks = 0; // columns of the block table
  DType x_type = DType::bf16;
  DType cache_type = DType::bf16;
  int32_t codes = 0; // f8, i8: values of a row that are codes

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("cols", &Config::cols), f("begin", &Config::begin), f("width", &Config::width),
        f("ld_x", &Config::ld_x), f("blocks", &Config::blocks), f("x_type", &Config::x_type),
        f("cache_type", &Config::cache_type), f("codes", &Config::codes);
  }
};

struct Args {
  const void *x; // [T, cols]
  void *pages;   // [blocks of the pool, 256, width], or blocks of codes
  Batch batch;
};

} // namespace k31::kernels::append
