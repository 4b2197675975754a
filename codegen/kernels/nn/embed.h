// Embedding rows: out[t] = table[token[t]].
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::embed {

struct Config {
  int32_t rows = 0;   // T, capacity of the entry
  int32_t hidden = 0; // H
  int32_t vocab = 0;
  DType table_type = DType::bf16;
  DType out_type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("hidden", &Config::hidden), f("vocab", &Config::vocab), f("table_type", &Config::table_type),
        f("out_type", &Config::out_type);
  }
};

struct Args {
  const int32_t *tokens; // [T]
  const void *table;     // [vocab, H]
  const int32_t *live;   // [1] live rows
  void *out;             // [T, H]
};

} // namespace k31::kernels::embed
