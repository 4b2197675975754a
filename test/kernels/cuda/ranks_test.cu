// What only plans of several ranks have: coll.join and coll.part, and moe.permute and moe.combine over the rows of several ranks.
#include "codegen/kernels/coll/join.cuh"
#include "codegen/kernels/coll/part.cuh"
#include "codegen/kernels/moe/combine.cuh"
#include "codegen/kernels/moe/permute.cuh"
#include "test/kernels/cuda/runner.h"
#include <numeric>

// For the launch code: see runner.h.
using _ZN3k317kernels4join6ConfigE = k31::kernels::join::Config;
using _ZN3k317kernels4part6ConfigE = k31::kernels::part::Config;
using _ZN3k317kernels7combine6ConfigE = k31::kernels::combine::Config;
using _ZN3k317kernels7RowTileE = k31::kernels::RowTile;
using _ZN3k317kernels7permute6ConfigE = k31::kernels::permute::Config;
using _ZN3k317kernels7permute4TileE = k31::kernels::permute::Tile;

using namespace k31::test;

namespace join_ranks {
K31_CUDA_KERNEL(join)
using namespace k31::kernels::join;
template <Config c> void join(int live) {
  Tensor x(c.type, c.size * c.capacity, c.part), count(DType::i32, 1, 1), out(c.type, c.capacity, c.cols);
  x.fill_normal(), count.set(0, 0, live);
  start<c>({x.device(), count.device<int32_t>(), out.device()});
  expect_close(out, live, [&](int64_t r, int64_t col) { return x.at(col / c.part * c.capacity + r, col % c.part); }, 0);
}
} // namespace join_ranks
K31_CUDA_TEST("coll.join") {
  using namespace join_ranks;
  join<Config{.capacity = 70, .part = 640, .cols = 5120, .size = 8}>(70); // whole parts, 16 bytes at a time
  join<Config{.capacity = 300, .part = 7, .cols = 27, .size = 4, .type = DType::f32}>(291);
  join<Config{.capacity = 5, .part = 24, .cols = 61, .size = 3}>(4); // the last part is shorter, rows at odd places
  join<Config{.capacity = 5, .part = 24, .cols = 61, .size = 3}>(0);
}

namespace part_ranks {
K31_CUDA_KERNEL(part)
using namespace k31::kernels::part;
template <Config c> void part(int live, int rank) {
  Tensor x(c.type, c.rows, c.cols, c.ld_x), count(DType::i32, 1, 1), coordinate(DType::i32, 1, 1), out(c.type, c.rows, c.part);
  x.fill_normal(), count.set(0, 0, live), coordinate.set(0, 0, rank);
  start<c>({x.device(), count.device<int32_t>(), coordinate.device<int32_t>(), out.device()});
  expect_close(out, live, [&](int64_t r, int64_t i) { return rank * c.part + i < c.cols ? x.at(r, rank * c.part + i) : 0; }, 0);
}
} // namespace part_ranks
K31_CUDA_TEST("coll.part") {
  using namespace part_ranks;
  for (int rank : {0, 3, 7})
    part<Config{.rows = 300, .cols = 4096, .part = 512, .ld_x = 4096}>(299, rank);
  for (int rank : {0, 1, 2, 3}) // the last one has some columns, or none
    part<Config{.rows = 9, .cols = 13, .part = 5, .ld_x = 17, .type = DType::f32}>(7, rank);
  part<Config{.rows = 9, .cols = 14, .part = 5, .ld_x = 17}>(9, 2);
  part<Config{.rows = 9, .cols = 14, .part = 5, .ld_x = 17}>(0, 1);
}

// Live rows of several ranks: each rank's stand at the front of its part.
struct Live {
  std::vector<int> counts, rows;
  Live(const std::vector<int> &counts, int capacity) : counts(counts) {
    for (size_t g = 0; g < counts.size(); ++g)
      for (int r = 0; r < counts[g]; ++r)
        rows.push_back((int)g * capacity + r);
  }
  void store(Tensor &t) const {
    for (size_t g = 0; g < counts.size(); ++g)
      t.set(0, (int64_t)g, counts[g]);
  }
};

namespace permute_ranks {
K31_CUDA_KERNEL(permute)
using namespace k31::kernels::permute;
// Experts of coordinate `rank` when it is not negative.
template <Config c> void permute(const Live &live, int rank, int low, int high) {
  Tensor x(c.type, c.rows, c.cols, c.ld_x), ids(DType::i32, c.rows, c.top_k), count(DType::i32, 1, c.groups),
      coordinate(DType::i32, 1, 1), out(c.type, c.rows * c.top_k, c.cols), offsets(DType::i32, 1, c.experts + 1),
      slot(DType::i32, c.rows, c.top_k);
  x.fill_normal(), live.store(count), coordinate.set(0, 0, rank);
  ids.fill([=] { return uniform_int(low, high); });
  Args args{x.device(), ids.device<int32_t>(), count.device<int32_t>(), {}};
  void **next = args.tail;
  if (c.ranked)
    *next++ = coordinate.device();
  *next++ = out.device(), *next++ = offsets.device(), *next++ = slot.device();
  start<c>(args);
  const int first = c.ranked ? rank * c.experts : c.first;
  std::vector<int> begin(c.experts + 1), source;
  std::vector<std::vector<int>> want(c.rows, std::vector<int>(c.top_k, -1));
  for (int e = 0; e < c.experts; ++e) {
    begin[e] = (int)source.size();
    for (int r : live.rows)
      for (int i = 0; i < c.top_k; ++i)
        if (ids.at(r, i) == first + e)
          want[r][i] = (int)source.size(), source.push_back(r);
  }
  begin[c.experts] = (int)source.size();
  expect_close(offsets, 1, [&](int64_t, int64_t e) { return (double)begin[e]; }, 0, "offsets");
  expect_close(out, (int64_t)source.size(), [&](int64_t r, int64_t col) { return x.at(source[r], col); }, 0);
  slot.fetch();
  std::vector<bool> alive(c.rows);
  for (int r : live.rows)
    alive[r] = true;
  for (int r = 0; r < c.rows; ++r) // poison is -1 too: a dead row's slots must not name a place either
    for (int i = 0; i < c.top_k; ++i)
      if (slot.at(r, i) != (alive[r] ? want[r][i] : -1))
        return fail("slot of row " + std::to_string(r) + ", choice " + std::to_string(i) + " is " +
                    std::to_string(slot.at(r, i)));
}
} // namespace permute_ranks
K31_CUDA_TEST("moe.permute.ranks") {
  using namespace permute_ranks;
  constexpr Config ranked{.rows = 300, .cols = 40, .top_k = 16, .experts = 112, .ld_x = 48, .ranked = 1};
  for (int rank : {0, 3, 7})
    permute<ranked>({{291}, 300}, rank, 0, 895);
  permute<ranked>({{300}, 300}, 8, 0, 895); // none of the experts lives here
  constexpr Config grouped{
      .rows = 256, .cols = 24, .top_k = 4, .first = 6, .experts = 10, .ld_x = 24, .groups = 4, .capacity = 64};
  permute<grouped>({{64, 0, 17, 1}, 64}, -1, 0, 20);
  permute<grouped>({{64, 64, 64, 64}, 64}, -1, 6, 15);
  permute<grouped>({{0, 0, 0, 0}, 64}, -1, 6, 15);
  constexpr Config both{
      .rows = 90, .cols = 5, .top_k = 3, .experts = 7, .ld_x = 9, .type = DType::f32, .ranked = 1, .groups = 3, .capacity = 30};
  for (int rank : {0, 1, 2}) // of 20 experts the third rank holds six and a place
    permute<both>({{30, 11, 0}, 30}, rank, 0, 19);
}

namespace combine_ranks {
K31_CUDA_KERNEL(combine)
using namespace k31::kernels::combine;
template <Config c> void combine(const Live &live) {
  Tensor x(c.x_type, c.rows * c.top_k, c.cols, c.ld_x), weights(DType::f32, c.rows, c.top_k), slot(DType::i32, c.rows, c.top_k),
      count(DType::i32, 1, c.groups), out(c.out_type, c.rows, c.cols, c.ld_out);
  x.fill_normal(), weights.fill_normal(), live.store(count);
  slot.fill([] { return uniform_int(0, 3) ? uniform_int(0, c.rows * c.top_k - 1) : -1; });
  start<c>({x.device(), weights.device<float>(), slot.device<int32_t>(), count.device<int32_t>(), out.device()});
  out.fetch();
  std::vector<bool> alive(c.rows);
  for (int r : live.rows)
    alive[r] = true;
  for (int r = 0; r < c.rows; ++r)
    for (int col = 0; col < c.cols; ++col) {
      double want = 0;
      for (int i = 0; i < c.top_k; ++i)
        if (slot.at(r, i) >= 0)
          want += weights.at(r, i) * x.at((int64_t)slot.at(r, i), col);
      const double got = out.at(r, col), most = 1e-5 + (c.out_type == DType::bf16 ? std::abs(want) / 256 : 0);
      if (alive[r] ? !(std::abs(got - want) <= most) : !std::isnan(got))
        return fail("row " + std::to_string(r) + ", column " + std::to_string(col) + " is " + std::to_string(got));
    }
  if (!out.untouched_outside(c.rows))
    fail("wrote outside its columns");
}
} // namespace combine_ranks
K31_CUDA_TEST("moe.combine.ranks") {
  using namespace combine_ranks;
  constexpr Config one{.rows = 70, .cols = 3584, .top_k = 16, .ld_x = 3584, .ld_out = 3584};
  combine<one>({{67}, 70}), combine<one>({{0}, 70});
  constexpr Config grouped{.rows = 96,
                           .cols = 41,
                           .top_k = 5,
                           .ld_x = 43,
                           .ld_out = 48,
                           .x_type = DType::f32,
                           .out_type = DType::f32,
                           .groups = 3,
                           .capacity = 32};
  combine<grouped>({{32, 0, 9}, 32});
  constexpr Config wide{.rows = 256, .cols = 512, .top_k = 2, .ld_x = 512, .ld_out = 512, .groups = 8, .capacity = 32};
  combine<wide>({{1, 32, 0, 7, 31, 32, 2, 0}, 32});
}
