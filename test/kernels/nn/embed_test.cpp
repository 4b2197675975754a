#include "codegen/kernels/nn/embed.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using embed::Args, embed::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

TEST(Embed, RowsOfTheTable) {
  for (DType table_type : {DType::f32, DType::bf16})
    for (DType out_type : {DType::f32, DType::bf16})
      for (int hidden : {16, 37, 1})
        for (uint32_t tasks : {1u, 3u, 16u}) {
          const int rows = 8, live = 6, vocab = 11;
          Tensor table(table_type, vocab, hidden), out(out_type, rows, hidden), tokens(DType::i32, 1, rows);
          table.fill_normal();
          for (int r = 0; r < live; ++r)
            tokens.set(0, r, (float)((r * 5) % vocab)); // past `live` the poison -1 must not be read
          k31_config = {rows, hidden, vocab, table_type, out_type};
          int32_t live_rows = live;
          launch(k31_entry, Args{tokens.as<int32_t>(), table.data(), &live_rows, out.data()}, tasks);
          expect_close(out, live, [&](int64_t r, int64_t c) { return table.at((r * 5) % vocab, c); }, 0);
        }
}

TEST(Embed, TokenOutsideTheVocabularyGivesZeros) {
  const int hidden = 20, vocab = 4;
  Tensor table(DType::bf16, vocab, hidden), out(DType::f32, 3, hidden);
  table.fill_normal();
  int32_t tokens[] = {-1, 3, vocab}, live = 3;
  k31_config = {3, hidden, vocab, DType::bf16, DType::f32};
  launch(k31_entry, Args{tokens, table.data(), &live, out.data()}, 2);
  expect_close(out, 3, [&](int64_t r, int64_t c) { return r == 1 ? table.at(3, c) : 0.0; }, 0);
}

} // namespace
