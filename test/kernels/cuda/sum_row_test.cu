// coll.sum_row: sums to the last bit, then a norm or an addition on them. Ranks of peer_ranks.h, cases one after the other over
// the same areas.
#include "codegen/kernels/coll/sum_row.cuh"
#include "test/kernels/cuda/peer_ranks.h"

using namespace k31::test;
namespace peer = k31::kernels::peer;
using k31::kernels::OperandKind, k31::kernels::inverse_root, k31::kernels::quotient;
using namespace k31::kernels::sum_row;

namespace {

template <class S, class R> __global__ void __launch_bounds__(S::tile.threads(), 1) entry(const __grid_constant__ Args args) {
  run<S::config, S::tile, R>(args);
}

constexpr int kBlocks = 32, kRegion = 1792; // a row of 7168 fp32 values
constexpr float kEpsilon = 1e-5f;

// The elements of a row op and a gain: v is their sum, the results v normed times the gain, and v.
template <int elements, int size> struct Norm {
  static __device__ __forceinline__ float value(const float *in) {
    float v = in[0];
    for (int i = 1; i < elements; ++i)
      v += in[i];
    return v;
  }
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = value(in) * value(in); }
  static __device__ __forceinline__ void phase1(const float *in, float *out) {
    out[0] = value(in) * inverse_root(quotient(in[elements + 1], size) + kEpsilon) * in[elements], out[1] = value(in);
  }
};
template <int elements> struct Add {
  static __device__ __forceinline__ void phase0(const float *in, float *out) {
    const float v = Norm<elements, 1>::value(in);
    out[0] = v * in[elements], out[1] = v;
  }
};

struct Shape {
  int ranks, rows, cols, elements = 2, at = 1, groups = 1;
  DType type = DType::bf16;
  bool scatter = false, map = false;
  int ld = cols; // of the other elements
  constexpr operator Config() const {
    Config c;
    c.rows = rows, c.at = at;
    c.peer = {
        .form = scatter ? peer::scatter : peer::sum, .ranks = ranks, .words = cols * k31::kernels::bytes_of_type(type) / 16};
    c.peer.blocks = kBlocks, c.peer.region = kRegion, c.peer.type = type;
    c.row.cols = cols, c.row.groups = groups, c.row.inputs = elements + 1, c.row.outputs = 2;
    for (int i = 0; i < elements; ++i)
      c.row.ld[i] = i == at ? cols : ld, c.row.type[i] = (int)(i == at ? type : i % 3 ? DType::bf16 : DType::f32);
    c.row.kind[elements] = (int)OperandKind::column, c.row.length[elements] = cols / groups,
    c.row.type[elements] = (int)DType::bf16;
    c.row.out_ld[0] = cols, c.row.out_ld[1] = cols + 8, c.row.out_type[0] = (int)DType::bf16;
    if (!map)
      c.row.phases = 1, c.row.sums[0] = 1;
    return c;
  }
};

template <class S, class R> void one(PeerRanks<S::config.peer.ranks> &ranks, int live) {
  constexpr Config c = S::config;
  constexpr int N = c.peer.ranks, rows = c.rows, cols = c.row.cols, elements = c.row.inputs - 1, size = cols / c.row.groups;
  constexpr bool scatter = c.peer.form == peer::scatter;
  Tensors x, sum, inputs, gain, y0, y1, count;
  add(x, N, c.peer.type, cols, scatter ? N * rows : rows), add(sum, N, c.peer.type, cols, rows);
  std::vector<Args> args(N);
  std::vector<int> alive(N);
  for (int r = 0; r < N; ++r) {
    ranks.use(r);
    alive[r] = scatter ? std::max(0, live - r) : live;
    count.emplace_back(DType::i32, 1, 1), count[r].set(0, 0, alive[r]);
    gain.emplace_back(DType::bf16, 1, size), gain[r].fill_normal(), x[r].fill_normal();
    y0.emplace_back((DType)c.row.out_type[0], rows, cols), y1.emplace_back((DType)c.row.out_type[1], rows, cols, c.row.out_ld[1]);
    args[r].x = x[r].device(), args[r].sum = sum[r].device(), args[r].live = count[r].device<int32_t>();
    void **next = args[r].tail;
    for (int i = 0; i < elements; ++i)
      if (i != c.at) {
        Tensor &other = inputs.emplace_back((DType)c.row.type[i], rows, cols, c.row.ld[i]);
        other.fill_normal(), *next++ = other.device();
      }
    *next++ = gain[r].device(), *next++ = y0[r].device(), *next++ = y1[r].device(), *next = ranks.area[r];
  }
  ranks.start(entry<S, R>, grid(c, S::tile), S::tile.threads(), smem(c, S::tile), args, 3, S::tile.split);
  const std::string what = std::to_string(N) + " ranks, " + std::to_string(rows) + " x " + std::to_string(cols) + ", " +
                           std::to_string(elements) + " elements" + (scatter ? ", scatter" : "");
  for (int r = 0; r < N; ++r) {
    const auto summed = [&](int64_t t, int64_t i) -> double {
      const float v = sum_at(x, i, (scatter ? r * rows : 0) + t);
      return c.peer.type == DType::bf16 ? round_bf16(v) : v;
    };
    const auto value = [&](int64_t t, int64_t i) {
      double v = summed(t, i);
      for (int e = 0; e + 1 < elements; ++e)
        v += inputs[r * (elements - 1) + e].at(t, i);
      return v;
    };
    std::vector<double> roots; // of each row's groups: what a norm divides by
    for (int t = 0; t < alive[r]; ++t)
      for (int first = 0; first < cols; first += size) {
        double squares = 0;
        for (int i = first; c.row.phases && i < first + size; ++i)
          squares += value(t, i) * value(t, i);
        roots.push_back(c.row.phases ? std::sqrt(squares / size + kEpsilon) : 1);
      }
    expect_close(sum[r], rows, summed, 0, (what + ": sum").c_str());
    expect_close(
        y0[r], alive[r],
        [&](int64_t t, int64_t i) { return value(t, i) * gain[r].at(0, i % size) / roots[t * c.row.groups + i / size]; }, 2e-5,
        (what + ": normed").c_str());
    expect_close(y1[r], alive[r], value, 1e-5, (what + ": added").c_str());
  }
}

template <int n, int rows, int cols, int elements, int at, int groups, DType type, bool scatter, bool map, int ld, int keep>
struct Case {
  static constexpr Config config = Shape{n, rows, cols, elements, at, groups, type, scatter, map, ld};
  static constexpr Tile chosen() {
    Tile t = choose(config);
    if (keep == 0)
      t.keep = 0; // from memory
    return t;
  }
  static constexpr Tile tile = chosen();
};
template <int n, int rows, int cols, int elements, int at = 1, int groups = 1, DType type = DType::bf16, bool scatter = false,
          bool map = false, int ld = cols, int keep = 96>
void norm(PeerRanks<n> &ranks, int live = rows) {
  using S = Case<n, rows, cols, elements, at, groups, type, scatter, map, ld, keep>;
  if constexpr (map)
    one<S, Add<elements>>(ranks, live);
  else
    one<S, Norm<elements, cols / groups>>(ranks, live);
}

constexpr DType f32 = DType::f32, bf16 = DType::bf16;
template <int n> void all() {
  PeerRanks<n> ranks({kBlocks, n, kRegion});
  norm<n, 3, 7168, 1, 0>(ranks);                                    // a norm
  norm<n, 3, 7168, 9, 4>(ranks, 2);                                 // nine elements: two blocks a row
  norm<n, 2, 7168, 4, 3, 1, f32>(ranks);                            // two words an access
  norm<n, 20, 1536, 9, 0>(ranks, 19);                               // no room for two blocks a row
  norm<n, 5, 512, 2>(ranks, 4), norm<n, 4, 64, 1, 0>(ranks);        // a warp or two
  norm<n, 3, 512, 2, 0, 4>(ranks, 2);                               // groups of columns
  norm<n, 3, 7168, 2, 1, 1, bf16, false, true>(ranks, 2);           // an addition
  norm<n, 3, 7168, 3, 2, 1, f32, true, true>(ranks, 3);             // of a share
  norm<n, 4, 2048, 2, 0, 1, bf16, true>(ranks, 4);                  // a norm of a share
  norm<n, 3, 7168, 9, 8, 1, bf16, false, false, 7168, 0>(ranks, 3); // from memory
  norm<n, 3, 1544, 2, 0, 1, bf16, false, false, 1547>(ranks, 2);    // rows that are not aligned
}

// The table names the own area for all ranks: nobody is waited for, the sum is what this rank adds.
void alone() {
  PeerRanks<2> ranks({kBlocks, 2, kRegion});
  const k31::kernels::PeerTable table{{ranks.area[0], ranks.area[0]}, 0, 0, nullptr};
  check(cudaMemcpy(ranks.area[0], &table, sizeof table, cudaMemcpyHostToDevice), "table");
  using S = Case<2, 3, 2048, 1, 0, 1, bf16, false, false, 2048, 96>;
  Tensor x(bf16, 3, 2048), sum(bf16, 3, 2048), gain(bf16, 1, 2048), y0(bf16, 3, 2048), y1(f32, 3, 2048, 2056),
      count(DType::i32, 1, 1);
  x.fill_normal(), gain.fill_normal(), count.set(0, 0, 2);
  const Args args{x.device(), sum.device(), count.device<int32_t>(), {gain.device(), y0.device(), y1.device(), ranks.area[0]}};
  for (int turn = 0; turn < 3; ++turn)
    launch(entry<S, Norm<1, 2048>>, grid(S::config, S::tile), S::tile.threads(), smem(S::config, S::tile), args, S::tile.split);
  expect_close(sum, 3, [&](int64_t t, int64_t i) { return x.at(t, i); }, 0, "sum");
  expect_close(y1, 2, [&](int64_t t, int64_t i) { return x.at(t, i); }, 0, "row");
}

} // namespace

K31_CUDA_TEST("coll.sum_row.alone") { alone(); }
K31_CUDA_TEST("coll.sum_row.two") { all<2>(); }
K31_CUDA_TEST("coll.sum_row.four") { all<4>(); }
