// coll.sum_row on CUDA: each block exchanges its row, or its half of one, by itself, and goes on with it.
//
// Where the region needs one unit and registers hold its elements, a thread pushes, sums and normalises the same columns: what
// the row op reads besides the sum is on its way while the peers' flags are not there yet, and the sum is not read back. Else the
// block writes its sum, meets, and runs the units from memory (never by loads past coherence: the same block has written it).
#pragma once
#include "codegen/kernels/coll/peer.cuh"
#include "codegen/kernels/coll/sum_row.tile.h"
#include "codegen/kernels/nn/row.cuh"

namespace k31::kernels::sum_row {

// What a block has of the exchange: words of its part of a row, as this rank's addends, the peers' and the sum have them.
template <Config c, Tile t> struct Part {
  static constexpr int kWords = c.peer.words / t.split, kColumns = c.row.cols / t.split;
  static constexpr bool kScatter = c.peer.form == kernels::peer::scatter;

  const int64_t row = blockIdx.x / t.split, rows = gridDim.x / t.split;
  const int32_t half = blockIdx.x % t.split;
  const uint4 *x;
  uint4 *sum;

  K31_DEVICE explicit Part(const Args &args) : x((const uint4 *)args.x), sum((uint4 *)args.sum + at()) {}
  K31_DEVICE int64_t at() const { return row * c.peer.words + half * kWords; }
  // This rank's addends of the piece for rank d.
  K31_DEVICE const uint4 *addend(int d) const { return x + (kScatter ? d * rows * c.peer.words : 0) + at(); }
};

template <Config c, Tile t> using Peers = kernels::peer::Exchange<c.peer, kernels::peer::Tile{.block = t.block}>;

// One unit, whose elements stay in registers.
template <Config c, Tile t, class Region>
K31_DEVICE void in_registers(const kernels::row::Args &args, const Part<c, t> &part, Peers<c, t> &peers, bool alive) {
  using Unit = kernels::row::Unit<c.row, t, Region, t.vector, true>;
  constexpr int V = t.vector, kPer = 16 / bytes_of_type(c.peer.type), kWords = V / kPer; // of an access
  const int32_t begin = part.half * Part<c, t>::kColumns;
  Unit unit{args, part.row, begin, begin + Part<c, t>::kColumns, 0};
  const auto word = [&](int32_t col) { return (col - begin) / kPer; };
  uint4 own[Unit::kAccesses][kWords];
  const uint4 *mine = part.addend(peers.rank);
  unit.for_accesses([&](int32_t col, int a) {
#pragma unroll
    for (int w = 0; w < kWords; ++w)
      own[a][w] = mine[word(col) + w];
  });
#pragma unroll
  for (int d = 0; d < c.peer.ranks; ++d)
    if (d != peers.rank) {
      uint4 *slot = peers.slot_at(d);
      const uint4 *theirs = part.addend(d);
      unit.for_accesses([&](int32_t col, int a) {
#pragma unroll
        for (int w = 0; w < kWords; ++w)
          slot[word(col) + w] = Part<c, t>::kScatter ? theirs[word(col) + w] : own[a][w];
      });
    }
  const bool told = peers.tell([](int) -> int64_t { return Part<c, t>::kWords; });
  if (alive)
    unit.template keep<c.at>();
  peers.wait(told);
  kernels::row::join_cluster<t>();
  unit.for_accesses([&](int32_t col, int a) {
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      uint4 addends[c.peer.ranks];
#pragma unroll
      for (int s = 0; s < c.peer.ranks; ++s)
        addends[s] = s == peers.rank ? own[a][w] : load_past_l1(peers.slot_of(s) + word(col) + w);
      const uint4 sum = peers.sum_of(addends);
      part.sum[word(col) + w] = sum;
      unit.kept[a][c.at][4 * w] = sum.x, unit.kept[a][c.at][4 * w + 1] = sum.y;
      unit.kept[a][c.at][4 * w + 2] = sum.z, unit.kept[a][c.at][4 * w + 3] = sum.w;
    }
  });
  if (alive)
    unit.template phases_from<0>();
}

// The sum in memory first.
template <Config c, Tile t, class Region, int V>
K31_DEVICE void in_memory(const kernels::row::Args &args, const Part<c, t> &part, Peers<c, t> &peers, bool alive) {
  using Unit = kernels::row::Unit<c.row, t, Region, V>;
  constexpr int32_t kTeams = t.block / t.team, kColumns = kernels::row::unit_columns(c.row, t);
  constexpr int64_t kUnits = kernels::row::units_of_row(c.row, t) / t.split; // of this block
  const uint4 *mine = part.addend(peers.rank);
  if constexpr (Part<c, t>::kScatter) {
#pragma unroll
    for (int d = 0; d < c.peer.ranks; ++d)
      if (d != peers.rank)
        for (int i = threadIdx.x; i < Part<c, t>::kWords; i += t.block)
          peers.slot_at(d)[i] = part.addend(d)[i];
  } else {
    peers.push_all(Part<c, t>::kWords, [&](int64_t i) { return mine[i]; });
  }
  peers.meet([](int) -> int64_t { return Part<c, t>::kWords; });
  kernels::row::join_cluster<t>();
  peers.sum_all(mine, Part<c, t>::kWords, [&](int64_t i, uint4 v) { part.sum[i] = v; });
  __syncthreads();
  uint32_t turn = 0;
  for (int64_t u = threadIdx.x / t.team; alive && u < kUnits; u += kTeams) {
    const int32_t begin = (int32_t)(part.half * kUnits + u) * kColumns;
    Unit unit{args, part.row, begin, least(begin + kColumns, c.row.cols), turn};
    if constexpr (Unit::kKeep)
      unit.keep();
    unit.template phases_from<0>();
    turn = unit.turn;
  }
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  static_assert(t.team == 32 || t.team == t.block, "a team is a warp or the block");
  static_assert(t.split == 1 || (t.team == t.block && c.row.groups == 1 && c.peer.words % t.split == 0));
  constexpr bool kRegisters = t.team == t.block && kernels::row::units_of_row(c.row, t) == t.split && t.vector > 1 &&
                              kernels::row::kHolds<c.row, t, t.vector>;
  const kernels::row::Args row = kernels::row::args_of<c>(args, args.live);
  const Part<c, t> part(args);
  Peers<c, t> peers(args.area(c), shared_memory() + row_smem(c, t));
  const bool alive = part.row < *args.live;
  kernels::row::begin_cluster<t>();
  if (t.vector > 1 && kernels::row::vectors_aligned<c.row>(row)) {
    if constexpr (kRegisters)
      in_registers<c, t, Region>(row, part, peers, alive);
    else
      in_memory<c, t, Region, t.vector>(row, part, peers, alive);
  } else {
    in_memory<c, t, Region, 1>(row, part, peers, alive);
  }
  peers.next();
  peers.end();
}

} // namespace k31::kernels::sum_row
