#include "codegen/kernels/coll/unpack.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using unpack::Args, unpack::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

void check(const std::vector<int> &counts, int top_k, DType type, uint32_t tasks) {
  const int size = (int)counts.size(), capacity = 6, cols = 11, rows = size * capacity;
  k31_config = {rows, capacity, cols, top_k, size, type};
  const PieceForm form = k31_config.form();
  Tensor pieces(DType::u8, size, form.bytes()), x(type, rows, cols), ids(DType::i32, rows, top_k),
      weights(DType::f32, rows, top_k);
  Tensor out(type, rows, cols), out_ids(DType::i32, rows, top_k), out_weights(DType::f32, rows, top_k), live(DType::i32, 1, size);
  x.fill_normal(), ids.fill([] { return (float)uniform_int(0, 99); }), weights.fill([] { return uniform(0, 1); });
  for (int s = 0; s < size; ++s) {
    const int32_t count = counts[s];
    memcpy(form.count(pieces.data(), s), &count, 4);
    for (int i = 0; i < count; ++i) {
      const int row = s * capacity + i;
      memcpy(form.ids(pieces.data(), s, i), ids.as<int32_t>() + row * top_k, top_k * 4);
      memcpy(form.weights(pieces.data(), s, i), weights.as<float>() + row * top_k, top_k * 4);
      memcpy(form.values(pieces.data(), s, i), x.as<char>() + row * cols * element_bytes(type), cols * element_bytes(type));
    }
  }
  launch(k31_entry, Args{pieces.data(), out.data(), out_ids.as<int32_t>(), out_weights.as<float>(), live.as<int32_t>()}, tasks);
  expect_close(live, 1, [&](int64_t, int64_t s) { return counts[s]; }, 0, "live");
  for (int s = 0; s < size; ++s)
    for (int i = 0; i < capacity; ++i)
      for (int c = 0; c < cols; ++c) {
        const int row = s * capacity + i;
        if (i >= counts[s]) {
          EXPECT_TRUE(std::isnan(out.at(row, c))) << "a row that did not come was written";
          continue;
        }
        EXPECT_EQ(out.at(row, c), x.at(row, c));
        EXPECT_EQ(out_ids.at(row, c % top_k), ids.at(row, c % top_k));
        EXPECT_EQ(out_weights.at(row, c % top_k), weights.at(row, c % top_k));
      }
}

TEST(Unpack, RowsAtTheirPlaces) {
  for (DType type : {DType::f32, DType::bf16})
    for (uint32_t tasks : {1u, 4u})
      check({3, 0, 6}, 3, type, tasks);
}
TEST(Unpack, NothingCame) { check({0, 0}, 2, DType::bf16, 2); }

} // namespace
