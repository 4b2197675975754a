// coll.peer on CUDA: each block exchanges its part of every piece by itself, so no block waits for another of its own rank.
//
// Writing to a peer costs half a round trip, reading from one a whole: what a peer needs is pushed. Flags are released and
// acquired at the scope of the system; the barrier of the block in between orders all its threads' words before its flags, and
// the peers' flags before its reads of the slots, which go past the first-level cache.
#pragma once
#include "codegen/kernels/coll/peer.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::peer {

template <Config c, Tile t> struct Exchange {
  static constexpr PeerArea at() { return c.area(); }
  static constexpr int kUnroll = 4;

  void *own;
  int32_t rank;
  uint32_t number; // of the exchange under way
  void *area[c.ranks];
  int64_t *totals; // in shared memory: words of each rank's piece

  K31_DEVICE explicit Exchange(void *own, void *shared = shared_memory()) : own(own), totals((int64_t *)shared) {
    const PeerTable &table = *(const PeerTable *)own;
    rank = table.rank;
    number = *at().counter(own, blockIdx.x) + 1;
#pragma unroll
    for (int d = 0; d < c.ranks; ++d)
      area[d] = table.area[d];
  }
  K31_DEVICE void end() {
    if (threadIdx.x == 0)
      *at().counter(own, blockIdx.x) = number - 1;
  }

  K31_DEVICE uint4 *slot_at(int to, int later = 0) const {
    return (uint4 *)at().slot(area[to], number + later, blockIdx.x, rank);
  }
  K31_DEVICE const uint4 *slot_of(int from) const { return (const uint4 *)at().slot(own, number, blockIdx.x, from); }

  // The same words to every peer: word(i) is read once.
  template <class Word> K31_DEVICE void push_all(int64_t count, Word &&word) const {
    for (int64_t i = threadIdx.x; i < count; i += t.threads() * kUnroll) {
      uint4 v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * t.threads() < count)
          v[u] = word(i + u * t.threads());
#pragma unroll
      for (int d = 0; d < c.ranks; ++d)
        if (d != rank)
#pragma unroll
          for (int u = 0; u < kUnroll; ++u)
            if (i + u * t.threads() < count)
              slot_at(d)[i + u * t.threads()] = v[u];
    }
  }

  // Everything of this exchange is written: tells the peers, who learn that this rank's piece for them has total(d) words. True
  // on threads that have to wait for one.
  template <class Total> K31_DEVICE bool tell(Total &&total) const {
    __syncthreads();
    const int peer = threadIdx.x;
    if (peer >= c.ranks)
      return false;
    void *there = ((const PeerTable *)own)->area[peer];
    if (there == own) { // this rank, or one without the others
      totals[peer] = total(peer);
      return false;
    }
    release_system(at().flag(there, number, blockIdx.x, rank), (uint64_t)number << 32 | (uint32_t)total(peer));
    return true;
  }
  // Until all peers have told.
  K31_DEVICE void wait(bool told) const {
    if (told) {
      const int peer = threadIdx.x;
      uint64_t flag;
      do
        flag = acquire_system(at().flag(own, number, blockIdx.x, peer));
      while ((uint32_t)(flag >> 32) != number);
      totals[peer] = (uint32_t)flag;
    }
    __syncthreads();
  }
  template <class Total> K31_DEVICE void meet(Total &&total) const { wait(tell(total)); }
  K31_DEVICE void next() { ++number; }

  // put(i, the sum over the ranks of word i); this rank's own addend stands at mine[i].
  template <class Put> K31_DEVICE void sum_all(const uint4 *mine, int64_t count, Put &&put) const {
    constexpr int kWords = c.ranks <= 2 ? 4 : c.ranks <= 4 ? 2 : 1; // at once: registers for all their addends
    for (int64_t i = threadIdx.x; i < count; i += t.threads() * kWords) {
      uint4 v[kWords][c.ranks];
#pragma unroll
      for (int u = 0; u < kWords; ++u)
        if (const int64_t at = i + u * t.threads(); at < count)
#pragma unroll
          for (int s = 0; s < c.ranks; ++s)
            v[u][s] = s == rank ? mine[at] : load_past_l1(slot_of(s) + at);
#pragma unroll
      for (int u = 0; u < kWords; ++u)
        if (const int64_t at = i + u * t.threads(); at < count)
          put(at, sum_of(v[u]));
    }
  }
  static K31_DEVICE uint4 sum_of(const uint4 (&word)[c.ranks]) {
    constexpr int V = 16 / bytes_of_type(c.type);
    float sums[V];
#pragma unroll
    for (int s = 0; s < c.ranks; ++s) {
      Raw<c.type, V> addend;
      addend.word[0] = word[s].x, addend.word[1] = word[s].y, addend.word[2] = word[s].z, addend.word[3] = word[s].w;
#pragma unroll
      for (int v = 0; v < V; ++v)
        sums[v] = s == 0 ? addend.get(v) : sums[v] + addend.get(v);
    }
    Raw<c.type, V> out;
    out.set(sums);
    return make_uint4(out.word[0], out.word[1], out.word[2], out.word[3]);
  }

  // What came from `from` to `to`.
  K31_DEVICE void copy(uint4 *to, int from, int64_t count) const {
    const uint4 *slot = slot_of(from);
    for (int64_t i = threadIdx.x; i < count; i += t.threads() * kUnroll) {
      uint4 v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * t.threads() < count)
          v[u] = load_past_l1(slot + i + u * t.threads());
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * t.threads() < count)
          to[i + u * t.threads()] = v[u];
    }
  }
};

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  constexpr int64_t steps = steps_of(c, grid(c, t).x);
  const int64_t parts = steps * gridDim.x;
  const auto *x = (const uint4 *)args.x;
  auto *out = (uint4 *)args.out(c);
  Exchange<c, t> peers(args.area(c));
  const int rank = peers.rank;
  // Words of the piece for a rank, live ones of an exchange.
  auto total = [&](int d) -> int64_t {
    if constexpr (c.form == exchange)
      return least(most(args.live()[d], 0) * (int64_t)c.unit, c.words);
    else
      return c.words;
  };
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t number = step * gridDim.x + blockIdx.x;
    const Part part = part_of(c.words, parts, number);
    if constexpr (c.form == sum || c.form == gather) {
      peers.push_all(part.count, [&](int64_t i) { return x[part.begin + i]; });
    } else {
#pragma unroll
      for (int d = 0; d < c.ranks; ++d) {
        const Part there = c.form == exchange ? part_of(total(d), parts, number) : part;
        const uint4 *from = x + (int64_t)d * c.words + there.begin;
        uint4 *to = d == rank && c.form == exchange ? out + (int64_t)d * c.words + there.begin : peers.slot_at(d);
        if (d != rank || c.form == exchange)
          for (int64_t i = threadIdx.x; i < there.count; i += t.threads())
            to[i] = from[i];
      }
    }
    peers.meet(total);
    if constexpr (c.form == sum) {
      peers.sum_all(x + part.begin, part.count, [&](int64_t i, uint4 v) { out[part.begin + i] = v; });
    } else if constexpr (c.form == scatter) {
      peers.sum_all(x + (int64_t)rank * c.words + part.begin, part.count, [&](int64_t i, uint4 v) { out[part.begin + i] = v; });
    } else if constexpr (c.form == sum_pieces) {
      peers.sum_all(x + (int64_t)rank * c.words + part.begin, part.count, [&](int64_t i, uint4 v) {
        out[(int64_t)rank * c.words + part.begin + i] = v;
#pragma unroll
        for (int d = 0; d < c.ranks; ++d)
          if (d != rank)
            peers.slot_at(d, 1)[i] = v; // of the next exchange
      });
      peers.next();
      peers.meet(total);
    }
    if constexpr (c.form != sum && c.form != scatter) {
      for (int s = 0; s < c.ranks; ++s) {
        const Part there = c.form == exchange ? part_of(peers.totals[s], parts, number) : part;
        uint4 *to = out + (int64_t)s * c.words + there.begin;
        if (s != rank)
          peers.copy(to, s, there.count);
        else if constexpr (c.form == gather)
          for (int64_t i = threadIdx.x; i < there.count; i += t.threads())
            to[i] = x[there.begin + i];
      }
    }
    peers.next();
  }
  peers.end();
}

} // namespace k31::kernels::peer
