// Ranks as threads: each has its own area and sees those of the others. Launches of all forms follow each other over the same
// areas, so that what one leaves behind would disturb the next.
#include "codegen/kernels/coll/peer.h"
#include "test/kernels/coll/peer_ranks.h"
#include <functional>

using namespace k31::kernels;
using namespace k31::test;
using peer::Args, peer::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Ranks : PeerRanks {
  explicit Ranks(int ranks, int region) : PeerRanks(ranks, region) {}
  // Each rank's arguments by `of`.
  void launch(Config config, const std::function<Args(int rank)> &of) {
    config.blocks = form.blocks, config.ranks = form.ranks, config.region = form.region;
    k31_config = config;
    run([&](int r, void *area) {
      Args args = of(r);
      (k31_config.form == peer::exchange ? args.tail[2] : args.tail[1]) = area;
      k31_entry(&args, 0, 1);
    });
  }
};

// All forms over x with `words` words a piece.
void check(Ranks &ranks, DType type, int64_t words) {
  SCOPED_TRACE(::testing::Message() << ranks.form.ranks << " ranks, " << words << " words, type " << (int)type);
  const int n = ranks.form.ranks;
  const int64_t per = 16 / (type == DType::f32 ? 4 : 2), piece = words * per;
  Config config;
  config.words = (int32_t)words, config.type = type;
  for (const bool pieces : {false, true}) {
    config.form = pieces ? peer::sum_pieces : peer::sum;
    const int64_t count = pieces ? n * piece : piece;
    auto x = tensors(n, type, count), out = tensors(n, type, count);
    for (Tensor &t : x)
      t.fill([] { return normal(1); });
    ranks.launch(config, [&](int r) { return Args{x[r].data(), {out[r].data()}}; });
    Tensor rounded(type, 1, count);
    for (int64_t i = 0; i < count; ++i)
      rounded.set(0, i, sum_at(x, i));
    for (Tensor &t : out) // to the last bit
      expect_close(t, 1, [&](int64_t, int64_t i) { return rounded.at(0, i); }, 0);
  }
  {
    config.form = peer::gather;
    auto x = tensors(n, type, piece), out = tensors(n, type, n * piece);
    for (Tensor &t : x)
      t.fill([] { return normal(1); });
    ranks.launch(config, [&](int r) { return Args{x[r].data(), {out[r].data()}}; });
    for (Tensor &t : out)
      expect_close(t, 1, [&](int64_t, int64_t i) { return x[i / piece].at(0, i % piece); }, 0);
  }
  {
    config.form = peer::scatter;
    auto x = tensors(n, type, n * piece), out = tensors(n, type, piece);
    for (Tensor &t : x)
      t.fill([] { return (float)uniform_int(-500, 500) / 4; });
    ranks.launch(config, [&](int r) { return Args{x[r].data(), {out[r].data()}}; });
    for (int r = 0; r < n; ++r) {
      Tensor rounded(type, 1, piece);
      for (int64_t i = 0; i < piece; ++i)
        rounded.set(0, i, sum_at(x, r * piece + i));
      expect_close(out[r], 1, [&](int64_t, int64_t i) { return rounded.at(0, i); }, 0);
    }
  }
}

TEST(Peer, AllForms) {
  for (int n : {2, 3, 8}) {
    Ranks ranks(n, 8);
    for (DType type : {DType::f32, DType::bf16})
      for (int64_t words : {1, 7, 8, 9, 100})
        check(ranks, type, words);
  }
}

// Live rows only: what is past them stays poisoned.
TEST(Peer, ExchangesLiveRows) {
  constexpr int n = 3, unit = 2, rows = 20;
  Ranks ranks(n, 8);
  Config config;
  config.form = peer::exchange, config.words = rows * unit, config.unit = unit;
  for (int turn = 0; turn < 4; ++turn) {
    std::vector<std::vector<int32_t>> live(n, std::vector<int32_t>(n));
    for (auto &of : live)
      for (int32_t &count : of)
        count = turn == 0 ? 0 : turn == 1 ? rows : uniform_int(0, rows);
    auto x = tensors(n, DType::f32, n * rows * unit * 4), out = tensors(n, DType::f32, n * rows * unit * 4);
    for (Tensor &t : x)
      t.fill([] { return normal(1); });
    ranks.launch(config, [&](int r) { return Args{x[r].data(), {live[r].data(), out[r].data()}}; });
    for (int r = 0; r < n; ++r)
      for (int s = 0; s < n; ++s)
        for (int64_t i = 0; i < rows * unit * 4; ++i) {
          const int64_t piece = rows * unit * 4;
          const float got = (float)out[r].at(0, s * piece + i);
          if (i < live[s][r] * unit * 4)
            ASSERT_EQ(got, (float)x[s].at(0, r * piece + i)) << "from " << s << " to " << r << " at " << i;
          else
            ASSERT_TRUE(std::isnan(got)) << "from " << s << " to " << r << " at " << i;
        }
  }
}

// A rank that does not come: the wait ends, and says so.
TEST(Peer, EndsAWait) {
  Ranks ranks(2, 8);
  auto &table = *static_cast<PeerTable *>(ranks.areas[0].get());
  table.wait = [](PeerTable *own, uint32_t looks) { return looks < 10 || (own->failed = 1, false); };
  Tensor x(DType::f32, 1, 4), out(DType::f32, 1, 4);
  Config config;
  config.form = peer::sum, config.words = 1, config.type = DType::f32, config.ranks = 2, config.region = 8;
  k31_config = config;
  Args args{x.data(), {out.data(), ranks.areas[0].get()}};
  k31_entry(&args, 0, 1);
  EXPECT_EQ(table.failed, 1);
}

// Long sums go by pieces where each rank would get many addends.
static_assert(!peer::by_pieces(1 << 20, 2) && peer::by_pieces(1 << 20, 8) && !peer::by_pieces(1 << 10, 8));
static_assert(!peer::by_pieces((1 << 20) + 1, 8)); // no whole pieces

} // namespace
