// The coll ops that are kernels of one rank: columns and rows of a rank, pieces of rows on their way to their experts.
#include "codegen/kernels/coll/join.cuh"
#include "codegen/kernels/coll/own_rows.cuh"
#include "codegen/kernels/coll/pack.cuh"
#include "codegen/kernels/coll/part.cuh"
#include "codegen/kernels/coll/unpack.cuh"
#include "test/kernels/cuda/runner.h"

// For the launch code: see runner.h.
using _ZN3k317kernels4join6ConfigE = k31::kernels::join::Config;
using _ZN3k317kernels4part6ConfigE = k31::kernels::part::Config;
using _ZN3k317kernels8own_rows6ConfigE = k31::kernels::own_rows::Config;
using _ZN3k317kernels4pack6ConfigE = k31::kernels::pack::Config;
using _ZN3k317kernels4pack4TileE = k31::kernels::pack::Tile;
using _ZN3k317kernels6unpack6ConfigE = k31::kernels::unpack::Config;
using _ZN3k317kernels7RowTileE = k31::kernels::RowTile;

using namespace k31::test;

namespace join_test {
K31_CUDA_KERNEL(join)
using namespace k31::kernels::join;
template <Config c> void join(int live) {
  Tensor x(c.type, c.size * c.capacity, c.part), count(DType::i32, 1, 1), out(c.type, c.capacity, c.cols);
  x.fill_normal(), count.set(0, 0, live);
  start<c>({x.device(), count.device<int32_t>(), out.device()});
  expect_close(out, live, [&](int64_t r, int64_t col) { return x.at(col / c.part * c.capacity + r, col % c.part); }, 0);
}
} // namespace join_test
K31_CUDA_TEST("coll.join") {
  using namespace join_test;
  join<Config{.capacity = 70, .part = 640, .cols = 5120, .size = 8}>(70); // whole parts, 16 bytes at a time
  join<Config{.capacity = 300, .part = 7, .cols = 27, .size = 4, .type = DType::f32}>(291);
  join<Config{.capacity = 5, .part = 24, .cols = 61, .size = 3}>(4); // the last part is shorter, rows at odd places
  join<Config{.capacity = 5, .part = 24, .cols = 61, .size = 3}>(0);
}

namespace part_test {
K31_CUDA_KERNEL(part)
using namespace k31::kernels::part;
template <Config c> void part(int live, int rank) {
  Tensor x(c.type, c.rows, c.cols, c.ld_x), count(DType::i32, 1, 1), coordinate(DType::i32, 1, 1), out(c.type, c.rows, c.part);
  x.fill_normal(), count.set(0, 0, live), coordinate.set(0, 0, rank);
  start<c>({x.device(), count.device<int32_t>(), coordinate.device<int32_t>(), out.device()});
  expect_close(out, live, [&](int64_t r, int64_t i) { return rank * c.part + i < c.cols ? x.at(r, rank * c.part + i) : 0; }, 0);
}
} // namespace part_test
K31_CUDA_TEST("coll.part") {
  using namespace part_test;
  for (int rank : {0, 3, 7})
    part<Config{.rows = 300, .cols = 4096, .part = 512, .ld_x = 4096}>(299, rank);
  for (int rank : {0, 1, 2, 3}) // the last one has some columns, or none
    part<Config{.rows = 9, .cols = 13, .part = 5, .ld_x = 17, .type = DType::f32}>(7, rank);
  part<Config{.rows = 9, .cols = 14, .part = 5, .ld_x = 17}>(9, 2);
  part<Config{.rows = 9, .cols = 14, .part = 5, .ld_x = 17}>(0, 1);
}

namespace own_rows_test {
K31_CUDA_KERNEL(own_rows)
using namespace k31::kernels::own_rows;
template <Config c> void own_rows(int live, int rank, int own) {
  Tensor x(c.type, 3 * c.share, c.cols, c.ld_x), out(c.type, c.share, c.cols), numbers(DType::i32, 1, 2), count(DType::i32, 1, 1);
  x.fill_normal(), numbers.set(0, 0, live), numbers.set(0, 1, rank);
  auto *given = numbers.device<int32_t>();
  start<c>({x.device(), given, given + 1, out.device(), count.device<int32_t>()});
  expect_close(count, 1, [&](int64_t, int64_t) { return own; }, 0, "own live");
  expect_close(out, own, [&](int64_t r, int64_t col) { return x.at(rank * c.share + r, col); }, 0);
}
constexpr Config wide{.cols = 264, .share = 20, .ld_x = 272};
constexpr Config odd{.cols = 33, .share = 20, .ld_x = 35, .type = DType::f32};
} // namespace own_rows_test
K31_CUDA_TEST("coll.own_rows") {
  own_rows_test::own_rows<own_rows_test::wide>(60, 1, 20), own_rows_test::own_rows<own_rows_test::odd>(47, 2, 7);
  own_rows_test::own_rows<own_rows_test::wide>(20, 2, 0);
}

namespace pack_test {
K31_CUDA_KERNEL(pack)
using namespace k31::kernels::pack;
using k31::kernels::PieceForm;

// Pieces byte by byte. `choose` gives an expert.
template <Config c, Tile t = k31::kernels::pack::choose(c), class Choose>
void pack(std::vector<int> live, int coordinate, Choose choose) {
  constexpr PieceForm form = c.form();
  Tensor x(c.type, c.rows, c.cols, c.ld_x), ids(DType::i32, c.rows, c.top_k), weights(DType::f32, c.rows, c.top_k),
      counts(DType::i32, 1, c.groups), rank(DType::i32, 1, 1), pieces(DType::u8, c.size, form.bytes()),
      units(DType::i32, 1, c.size), slot(DType::i32, c.rows, c.size);
  x.fill_normal(), ids.fill(choose), weights.fill([] { return uniform(0, 1); }), rank.set(0, 0, coordinate);
  std::vector<int> alive;
  for (int g = 0; g < c.groups; ++g) {
    counts.set(0, g, live[g]);
    for (int i = 0; i < live[g]; ++i)
      alive.push_back(g * c.capacity + i);
  }
  Args args{x.device(), ids.device<int32_t>(), weights.device<float>(), counts.device<int32_t>(), {}};
  void **next = args.tail;
  if (c.ranked)
    *next++ = rank.device();
  *next++ = pieces.device(), *next++ = units.device(), *next++ = slot.device();
  start<c, t>(args);
  pieces.fetch(), units.fetch(), slot.fetch();
  const int first = c.ranked ? coordinate / c.size * c.size * c.share : 0;
  for (int d = 0; d < c.size; ++d) {
    int count = 0;
    auto bytes = [&](int64_t at, int n, auto value, auto &&want) { // n values of the row that stands at byte `at` of the piece
      for (int i = 0; i < n; ++i) {
        unsigned char raw[4] = {};
        for (int b = 0; b < (int)sizeof(value); ++b)
          raw[b] = (unsigned char)pieces.at(d, at + i * (int)sizeof(value) + b);
        std::memcpy(&value, raw, sizeof(value));
        if (!want(i, value))
          return fail("piece " + std::to_string(d) + " differs at byte " + std::to_string(at + i * (int)sizeof(value)));
      }
    };
    for (int row : alive) {
      bool goes = false;
      for (int i = 0; i < c.top_k; ++i) {
        const int local = (int)ids.at(row, i) - first - d * c.share;
        goes |= local >= 0 && local < c.share;
      }
      const int want = goes ? d * c.room + count : -1;
      if ((int)slot.at(row, d) != want)
        return fail("row " + std::to_string(row) + " has slot " + std::to_string((int)slot.at(row, d)) + " of rank " +
                    std::to_string(d) + ", expected " + std::to_string(want));
      if (!goes)
        continue;
      const int64_t at = PieceForm::kUnit + count * form.row_bytes();
      bytes(at, c.top_k, int32_t(), [&](int i, int32_t v) { return v == (int)ids.at(row, i); });
      bytes(at + 4 * c.top_k, c.top_k, float(), [&](int i, float v) { return v == (float)weights.at(row, i); });
      if (c.type == DType::f32)
        bytes(at + 8 * c.top_k, c.cols, float(), [&](int i, float v) { return v == (float)x.at(row, i); });
      else
        bytes(at + 8 * c.top_k, c.cols, uint16_t(), [&](int i, uint16_t v) {
          const uint32_t word = (uint32_t)v << 16;
          float value;
          std::memcpy(&value, &word, 4);
          return value == (float)x.at(row, i);
        });
      ++count;
    }
    bytes(0, 1, int32_t(), [&](int, int32_t v) { return v == count; });
    if ((int)units.at(0, d) != form.units(count))
      fail("units of rank " + std::to_string(d) + " are " + std::to_string((int)units.at(0, d)));
  }
}
constexpr Config wide{.rows = 700, .room = 700, .cols = 264, .top_k = 16, .ld_x = 272, .size = 5, .share = 7};
constexpr Config odd{.rows = 30, .room = 30, .cols = 33, .top_k = 3, .ld_x = 35, .size = 3, .share = 2, .type = DType::f32};
constexpr Config host{
    .rows = 60, .room = 60, .cols = 64, .top_k = 2, .ld_x = 64, .size = 2, .share = 4, .ranked = 1, .groups = 3, .capacity = 20};
constexpr Config few{.rows = 128, .room = 128, .cols = 264, .top_k = 16, .ld_x = 272, .size = 5, .share = 7},
    many_choices{.rows = 40, .room = 40, .cols = 8, .top_k = 40, .ld_x = 8, .size = 2, .share = 30},
    node{.rows = 128,
         .room = 128,
         .cols = 40,
         .top_k = 16,
         .ld_x = 40,
         .size = 4,
         .share = 14,
         .ranked = 1,
         .groups = 8,
         .capacity = 16};
constexpr Tile by_block{.block = 256}, by_warp{.block = 256, .few = 1};
} // namespace pack_test
K31_CUDA_TEST("coll.pack.few") { // both forms, whatever the capacity
  using namespace pack_test;
  static_assert(choose(few).few && !choose(wide).few);
  for (int live : {0, 1, 8, 31, 32, 33, 64, 128}) {
    pack<few, by_warp>({live}, 0, [] { return uniform_int(0, 89); });
    pack<few, by_block>({live}, 0, [] { return uniform_int(0, 34); });
  }
  pack<few, by_warp>({128}, 0, [] { return uniform_int(7, 13); });
  pack<many_choices, by_warp>({37}, 0, [] { return uniform_int(0, 900); });
  pack<host, by_block>({20, 0, 13}, 3, [] { return uniform_int(0, 23); });
  for (const std::vector<int> &live : std::vector<std::vector<int>>{{8, 8, 0, 16, 3, 8, 8, 1}, {0, 0, 0, 0, 0, 0, 0, 2}})
    pack<node, by_warp>(live, 6, [] { return uniform_int(0, 111); }),
        pack<node, by_block>(live, 6, [] { return uniform_int(0, 111); });
}
K31_CUDA_TEST("coll.pack") {
  using namespace pack_test;
  pack<wide>({690}, 0, [] { return uniform_int(0, 89); }); // most choices live elsewhere
  pack<wide>({700}, 0, [] { return uniform_int(7, 13); }); // all go to one rank
  pack<odd>({29}, 0, [] { return uniform_int(0, 4); }), pack<odd>({0}, 0, [] { return 0; });
  for (int coordinate : {0, 3, 4})
    pack<host>({20, 0, 13}, coordinate, [] { return uniform_int(0, 23); });
}

namespace unpack_test {
K31_CUDA_KERNEL(unpack)
using namespace k31::kernels::unpack;
using k31::kernels::PieceForm;
template <Config c> void unpack(std::vector<int> counts) {
  constexpr PieceForm form = c.form();
  Tensor pieces(DType::u8, c.size, form.bytes()), out(c.type, c.rows, c.cols), ids(DType::i32, c.rows, c.top_k),
      weights(DType::f32, c.rows, c.top_k), live(DType::i32, 1, c.size);
  auto put = [&](int piece, int64_t at, auto value) {
    unsigned char raw[sizeof(value)];
    std::memcpy(raw, &value, sizeof(value));
    for (size_t b = 0; b < sizeof(value); ++b)
      pieces.set(piece, at + (int64_t)b, raw[b]);
  };
  auto value = [](int piece, int row, int i) { return (float)((piece * 37 + row * 11 + i) % 200); }; // exact in bf16
  for (int s = 0; s < c.size; ++s) {
    put(s, 0, (int32_t)counts[s]);
    for (int r = 0; r < counts[s]; ++r) {
      const int64_t at = PieceForm::kUnit + r * form.row_bytes();
      for (int i = 0; i < c.top_k; ++i)
        put(s, at + 4 * i, (int32_t)(r + i)), put(s, at + 4 * (c.top_k + i), (float)(s + i));
      for (int i = 0; i < c.cols; ++i)
        if (c.type == DType::f32) {
          put(s, at + 8 * c.top_k + 4 * i, value(s, r, i));
        } else {
          const float v = value(s, r, i);
          uint32_t word;
          std::memcpy(&word, &v, 4);
          put(s, at + 8 * c.top_k + 2 * i, (uint16_t)(word >> 16));
        }
    }
  }
  start<c>({pieces.device(), out.device(), ids.device<int32_t>(), weights.device<float>(), live.device<int32_t>()});
  out.fetch(), ids.fetch(), weights.fetch(), live.fetch();
  for (int s = 0; s < c.size; ++s) {
    if ((int)live.at(0, s) != counts[s])
      return fail("piece " + std::to_string(s) + " has " + std::to_string((int)live.at(0, s)) + " rows");
    for (int r = 0; r < counts[s]; ++r) {
      const int row = s * c.capacity + r;
      for (int i = 0; i < c.cols; ++i)
        if (out.at(row, i) != value(s, r, i))
          return fail("row " + std::to_string(row) + " differs in column " + std::to_string(i));
      for (int i = 0; i < c.top_k; ++i)
        if ((int)ids.at(row, i) != r + i || weights.at(row, i) != s + i)
          return fail("row " + std::to_string(row) + " differs in choice " + std::to_string(i));
    }
  }
}
constexpr Config wide{.rows = 160, .capacity = 40, .cols = 264, .top_k = 16, .size = 4};
constexpr Config odd{.rows = 24, .capacity = 8, .cols = 33, .top_k = 3, .size = 3, .type = DType::f32};
} // namespace unpack_test
K31_CUDA_TEST("coll.unpack") {
  unpack_test::unpack<unpack_test::wide>({40, 0, 17, 1}), unpack_test::unpack<unpack_test::odd>({8, 3, 0});
}
