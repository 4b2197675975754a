// nn.row and nn.map on CUDA: a team (a warp or a block) takes one group of columns of one row, 8 neighbouring columns a thread
// and access. Elements that later phases need again stay in registers as they were read (bf16 packed) when the Tile allows that
// many; else they are read again from cache. Each phase ends with the team's sums, every thread having all of them. Two blocks of
// a cluster may take half of the columns each; they write their sums into each other's shared memory.
#pragma once
#include "codegen/kernels/common/cluster.cuh"
#include "codegen/kernels/common/math.cuh"
#include "codegen/kernels/common/reduce.cuh"
#include "codegen/kernels/nn/row.tile.h"

namespace k31::kernels::row {

template <Config c> struct Known { // reductions of the phases before P
  static constexpr int sums(int p) {
    int known = 0;
    for (int i = 0; i < p; ++i)
      known += c.sums[i];
    return known;
  }
};

template <class Region, int P> K31_DEVICE void region(const float *in, float *out) {
  if constexpr (P == 0)
    Region::phase0(in, out);
  else if constexpr (P == 1)
    Region::phase1(in, out);
  else if constexpr (P == 2)
    Region::phase2(in, out);
  else if constexpr (P == 3)
    Region::phase3(in, out);
  else if constexpr (P == 4)
    Region::phase4(in, out);
  else
    Region::phase5(in, out); // of a kernel that has a row op and one function more
}

// The arguments of the row op that another kernel goes on with; that kernel's Args give them, one by one.
template <auto c, class A> K31_DEVICE Args args_of(const A &of, const int32_t *live) {
  Args out;
  out.live = live;
  for_index<c.row.inputs>([&](auto index) { out.tail[decltype(index)::value] = of.input(c, decltype(index)::value); });
  for_index<c.row.outputs>(
      [&](auto index) { out.tail[c.row.inputs + decltype(index)::value] = of.output(c, decltype(index)::value); });
  return out;
}

// Do the registers of a thread hold the elements of its unit?
template <Config c, Tile t, int V>
constexpr bool kHolds = V == t.vector && ceil_div(unit_columns(c, t), t.team *V) <= 16 && kept_words(c, t) <= t.keep;

// Of the two places for sums that the phases of a cluster take in turn.
template <Tile t> K31_DEVICE Barrier *cluster_barriers() { return (Barrier *)((float *)shared_memory() + 2 * t.phase_values()); }

// Keep: what later phases need again stays in registers; who sets it without a phase keeps elements by itself.
template <Config c, Tile t, class Region, int V, bool Keep = kHolds<c, t, V> && (c.phases > 0)> struct Unit {
  static constexpr int kColumns = unit_columns(c, t);
  static constexpr int kAccesses = (int)ceil_div(kColumns, t.team *V); // of a thread
  static constexpr bool kKeep = Keep;
  static constexpr int kAllSums = Known<c>::sums(c.phases);

  const Args &args;
  int64_t row;
  int32_t begin, end; // columns
  uint32_t turn;      // phases before, of all units: a cluster's sums have two places
  uint32_t kept[kKeep ? kAccesses : 1][c.inputs ? c.inputs : 1][V];
  float sums[kAllSums ? kAllSums : 1];

  K31_DEVICE int32_t column(int access) const { return begin + (access * t.team + (int)threadIdx.x % t.team) * V; }

  template <int I> static constexpr bool is_element = (OperandKind)c.kind[I] == OperandKind::element;
  template <int I> static constexpr DType type_of = (DType)c.type[I];

  template <int I> K31_DEVICE Raw<type_of<I>, V> load_elements(int32_t col) const {
    Raw<type_of<I>, V> raw;
    raw.load(args.tail[I], row * c.ld[I] + col);
    return raw;
  }

  // Calls f(column, access) for each access of this thread.
  template <class F> K31_DEVICE void for_accesses(F f) const {
    if constexpr (kKeep || kAccesses == 1) {
#pragma unroll
      for (int a = 0; a < kAccesses; ++a)
        if (column(a) < end)
          f(column(a), a);
    } else {
#pragma unroll 1
      for (int a = 0; a < kAccesses; ++a)
        if (column(a) < end)
          f(column(a), a);
    }
  }

  // The elements, but those of one input that others bring.
  template <int But = -1> K31_DEVICE void keep() {
    for_accesses([&](int32_t col, int a) {
      for_index<c.inputs>([&](auto index) {
        constexpr int I = decltype(index)::value;
        if constexpr (is_element<I> && I != But) {
          auto raw = load_elements<I>(col);
#pragma unroll
          for (int w = 0; w < raw.kWords; ++w)
            kept[a][I][w] = raw.word[w];
        }
      });
    });
  }

  // Calls f(v, outputs of region P) for each of the V columns of an access.
  template <int P, class F> K31_DEVICE void evaluate(int32_t col, int a, F f) const {
    float values[V][c.inputs ? c.inputs : 1];
    for_index<c.inputs>([&](auto index) {
      constexpr int I = decltype(index)::value;
      constexpr OperandKind kind = (OperandKind)c.kind[I];
      if constexpr (kind == OperandKind::element || (kind == OperandKind::column && V > 1)) {
        Raw<type_of<I>, V> raw;
        if constexpr (kind == OperandKind::column) {
          raw.load(args.tail[I], c.length[I] == c.cols ? col : col % c.length[I]);
        } else if constexpr (kKeep) {
#pragma unroll
          for (int w = 0; w < raw.kWords; ++w)
            raw.word[w] = kept[a][I][w];
        } else {
          raw = load_elements<I>(col);
        }
#pragma unroll
        for (int v = 0; v < V; ++v)
          values[v][I] = raw.get(v);
      } else {
        float one = load_operand<kind, type_of<I>>(args.tail[I], c.ld[I], c.length[I], c.cols, row, col);
#pragma unroll
        for (int v = 0; v < V; ++v)
          values[v][I] = one;
      }
    });
#pragma unroll
    for (int v = 0; v < V; ++v) {
      constexpr int kKnown = Known<c>::sums(P);
      float in[c.inputs + kKnown + 1], out[kMaxSums];
#pragma unroll
      for (int i = 0; i < c.inputs; ++i)
        in[i] = values[v][i];
#pragma unroll
      for (int s = 0; s < kKnown; ++s)
        in[c.inputs + s] = sums[s];
      region<Region, P>(in, out);
      f(v, out);
    }
  }

  // Many sums of a block with few shuffles: each lane ends with one of its warp's, each warp adds up some of the block's and
  // calls put(number of the sum, total). parts: [sums, warps] in shared memory.
  template <int N, class Put> K31_DEVICE void add_up(const float (&sum)[N], float *parts, Put put) {
    constexpr int kWarps = t.team / 32;
    int mine = 0;
    const float part = warp_sums(sum, mine);
    if (mine < N)
      parts[mine * kWarps + warp_id()] = part;
    __syncthreads();
    for (int s = warp_id(); s < N; s += kWarps)
      put(s, warp_sum(lane_id() < kWarps ? parts[s * kWarps + lane_id()] : 0.0f));
  }
  template <int First, int N> K31_DEVICE void reduce_many(const float (&sum)[N]) {
    float *totals = (float *)shared_memory(); // [sums], in front of the parts
    add_up(sum, totals + kMaxSums, [&](int s, float total) {
      if (lane_id() == 0)
        totals[s] = total;
    });
    __syncthreads();
#pragma unroll
    for (int s = 0; s < N; ++s)
      sums[First + s] = totals[s];
    __syncthreads(); // the next phase uses the same memory
  }
  // The same across the blocks of a cluster: each sends its sums to all. Parts and sums of the next phase go to the other place,
  // as a thread may still read these.
  template <int First, int N> K31_DEVICE void reduce_cluster(const float (&sum)[N]) {
    float *totals = (float *)shared_memory() + (turn & 1) * t.phase_values(); // [sums, blocks]
    Barrier *arrived = cluster_barriers<t>() + (turn & 1);
    if (threadIdx.x == 0)
      barrier_expect(arrived, N * t.split * 4);
    add_up(sum, totals + kMaxSums * t.split, [&](int s, float total) {
      if (lane_id() < t.split)
        store_to_block(&totals[s * t.split + cluster_rank()], arrived, lane_id(), total);
    });
    barrier_wait(arrived, (turn >> 1) & 1);
#pragma unroll
    for (int s = 0; s < N; ++s) {
      sums[First + s] = totals[s * t.split];
#pragma unroll
      for (int b = 1; b < t.split; ++b)
        sums[First + s] += totals[s * t.split + b];
    }
    ++turn;
  }
  template <int P> K31_DEVICE void reduce() {
    constexpr int kFirst = Known<c>::sums(P), kCount = c.sums[P];
    float sum[kCount ? kCount : 1] = {};
    for_accesses([&](int32_t col, int a) {
      evaluate<P>(col, a, [&](int, const float *out) {
#pragma unroll
        for (int s = 0; s < kCount; ++s)
          sum[s] += out[s];
      });
    });
    if constexpr (t.split > 1)
      return reduce_cluster<kFirst>(sum);
    else if constexpr (t.team > 32 && kCount > kFewSums)
      return reduce_many<kFirst>(sum);
#pragma unroll
    for (int s = 0; s < kCount; ++s)
      sum[s] = warp_sum(sum[s]);
    if constexpr (t.team > 32) {
      constexpr int kWarps = t.team / 32;
      float *scratch = (float *)shared_memory(); // [sums, warps]
      if (lane_id() == 0) {
#pragma unroll
        for (int s = 0; s < kCount; ++s)
          scratch[s * kWarps + warp_id()] = sum[s];
      }
      __syncthreads();
#pragma unroll
      for (int s = 0; s < kCount; ++s)
        sum[s] = warp_sum(lane_id() < kWarps ? scratch[s * kWarps + lane_id()] : 0.0f);
      __syncthreads();
    }
#pragma unroll
    for (int s = 0; s < kCount; ++s)
      sums[kFirst + s] = sum[s];
  }

  template <int P> K31_DEVICE void phases_from() {
    if constexpr (P < c.phases) {
      reduce<P>();
      phases_from<P + 1>();
    } else {
      for_accesses([&](int32_t col, int a) {
        float results[c.outputs][V];
        evaluate<P>(col, a, [&](int v, const float *out) {
#pragma unroll
          for (int i = 0; i < c.outputs; ++i)
            results[i][v] = out[i];
        });
        for_index<c.outputs>([&](auto index) {
          constexpr int I = decltype(index)::value;
          Raw<(DType)c.out_type[I], V> raw;
          raw.set(results[I]);
          raw.store(args.tail[c.inputs + I], row * c.out_ld[I] + col);
        });
      });
    }
  }
};

// Before the first unit: the blocks of a cluster tell each other that they have begun, then wait for it.
template <Tile t> K31_DEVICE void begin_cluster() {
  if constexpr (t.split > 1) {
    if (threadIdx.x == 0) {
      Barrier *arrived = cluster_barriers<t>();
      barrier_init(&arrived[0], 1), barrier_init(&arrived[1], 1);
      barrier_init_done();
    }
    cluster_arrive();
  }
}
template <Tile t> K31_DEVICE void join_cluster() { // no block writes to one that has not begun
  if constexpr (t.split > 1)
    cluster_wait();
}

template <Config c, Tile t, class Region, int V> K31_DEVICE void all_units(const Args &args) {
  constexpr int32_t kTeams = t.block / t.team, kColumns = unit_columns(c, t);
  const int64_t per_row = units_of_row(c, t), units = *args.live * per_row;
  uint32_t turn = 0;
  begin_cluster<t>();
  join_cluster<t>();
  for (int64_t u = (int64_t)blockIdx.x * kTeams + threadIdx.x / t.team; u < units; u += (int64_t)gridDim.x * kTeams) {
    int32_t begin = (int32_t)(u % per_row) * kColumns;
    Unit<c, t, Region, V> unit{args, u / per_row, begin, least(begin + kColumns, c.cols), turn};
    if constexpr (Unit<c, t, Region, V>::kKeep)
      unit.keep();
    unit.template phases_from<0>();
    turn = unit.turn;
  }
}

// Do addresses allow accesses of whole vectors?
template <Config c> K31_DEVICE bool vectors_aligned(const Args &args) {
  bool aligned = true;
  for_index<c.inputs>([&](auto index) {
    constexpr OperandKind kind = (OperandKind)c.kind[decltype(index)::value];
    if constexpr (kind == OperandKind::element || kind == OperandKind::column)
      aligned = aligned && aligned16(args.tail[decltype(index)::value]);
  });
  for_index<c.outputs>([&](auto index) { aligned = aligned && aligned16(args.tail[c.inputs + decltype(index)::value]); });
  return aligned;
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  static_assert(t.team == 32 || t.team == t.block, "a team is a warp or the block");
  static_assert(t.split == 1 || (t.team == t.block && c.phases > 0 && c.cols / c.groups % (t.split * t.vector) == 0));
  if constexpr (t.vector > 1) {
    static_assert(vectors_fit(c), "operands of this Config do not allow vectors");
    if (vectors_aligned<c>(args))
      return all_units<c, t, Region, t.vector>(args);
  }
  all_units<c, t, Region, 1>(args);
}

} // namespace k31::kernels::row
