// coll.peer: ranks are streams of one GPU, or of all that reach each other's memory, each with an area of its own. All forms, one
// after the other over the same areas.
#include "codegen/kernels/coll/peer.cuh"
#include "test/kernels/cuda/peer_ranks.h"

// For the launch code: see runner.h.
using _ZN3k317kernels4peer6ConfigE = k31::kernels::peer::Config;
using _ZN3k317kernels4peer4TileE = k31::kernels::peer::Tile;

using namespace k31::test;
namespace peer = k31::kernels::peer;

namespace {

template <peer::Config c, peer::Tile t>
__global__ void __launch_bounds__(t.threads(), 1) entry(const __grid_constant__ peer::Args args) {
  peer::run<c, t, k31::kernels::NoRegion>(args);
}

constexpr int kBlocks = 8, kRegion = 64; // small regions: many steps

template <int N> struct Ranks : PeerRanks<N> {
  Ranks() : PeerRanks<N>({kBlocks, N, kRegion}) {}
  // args[r] without the area, `times` launches in a row.
  template <peer::Config c> void run(std::vector<peer::Args> args, int times = 3) {
    constexpr peer::Tile tile = peer::choose(c);
    for (int r = 0; r < N; ++r)
      args[r].tail[(c.form == peer::exchange) + 1] = this->area[r];
    this->start(entry<c, tile>, peer::grid(c, tile), tile.threads(), tile.smem(c), args, times);
  }
};

template <int N, DType type, int words, int form> void one(Ranks<N> &ranks) {
  constexpr peer::Config c{
      .form = form, .ranks = N, .words = words, .unit = 2, .blocks = kBlocks, .region = kRegion, .type = type};
  constexpr int64_t piece = words * (16 / k31::kernels::bytes_of_type(type));
  constexpr bool gathers = form == peer::gather;
  Tensors x, out, live;
  add(x, N, type, c.pieces() * piece), add(live, N, DType::i32, N);
  add(out, N, type, form == peer::scatter ? piece : gathers ? N * piece : c.pieces() * piece);
  std::vector<peer::Args> args(N);
  for (int r = 0; r < N; ++r) {
    ranks.use(r);
    x[r].fill_normal(), live[r].fill([&] { return uniform_int(0, words / 2); });
    args[r] = {x[r].device(), {}};
    void **next = args[r].tail;
    if (form == peer::exchange)
      *next++ = live[r].device();
    *next = out[r].device();
  }
  ranks.template run<c>(args);
  const std::string what =
      "form " + std::to_string(form) + ", " + std::to_string(N) + " ranks, " + std::to_string(words) + " words";
  for (int r = 0; r < N; ++r) {
    if (form == peer::exchange) {
      out[r].fetch();
      for (int s = 0; s < N; ++s)
        for (int64_t i = 0; i < piece; ++i) {
          const double got = out[r].at(0, s * piece + i);
          const bool alive = i < (int64_t)live[s].at(0, r) * 2 * (piece / words);
          if (alive ? got != x[s].at(0, r * piece + i) : got == got)
            return fail(what + ": value " + std::to_string(i) + " of piece " + std::to_string(s) + " is " + std::to_string(got));
        }
      continue;
    }
    expect_close(
        out[r], 1,
        [&](int64_t, int64_t i) -> double {
          if (gathers)
            return x[i / piece].at(0, i % piece);
          const float sum = sum_at(x, form == peer::scatter ? r * piece + i : i);
          return type == DType::bf16 ? round_bf16(sum) : sum;
        },
        0, what.c_str());
  }
}

template <int N, DType type, int words> void forms(Ranks<N> &ranks) {
  one<N, type, words, peer::sum>(ranks), one<N, type, words, peer::sum_pieces>(ranks), one<N, type, words, peer::gather>(ranks);
  one<N, type, words, peer::scatter>(ranks), one<N, type, words, peer::exchange>(ranks);
}
template <int N> void all() {
  Ranks<N> ranks;
  forms<N, DType::bf16, 1>(ranks), forms<N, DType::f32, 300>(ranks), forms<N, DType::bf16, 2 * kBlocks * kRegion + 5>(ranks);
}

} // namespace

K31_CUDA_TEST("coll.peer.two") { all<2>(); }
K31_CUDA_TEST("coll.peer.four") { all<4>(); }
K31_CUDA_TEST("coll.peer.eight") { all<8>(); }
