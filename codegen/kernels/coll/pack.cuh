// coll.pack on CUDA: blocks of column y make the piece of rank y, each from one run of rows. Of few rows:
// pack_few.cuh.
//
// A block counts the rows before its run that go there (they read 4 top_k bytes a row from the second-level cache), so that it
// knows its place without waiting for others; inside the run places follow from a prefix sum over the threads. Rows keep their
// order, so every run gives the same bytes.
#pragma once
#include "codegen/kernels/coll/pack_few.cuh"

namespace k31::kernels::pack {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (t.few)
    return pack_few<c, t>(args);
  int32_t *sums = (int32_t *)shared_memory(), *places = sums + 32;
  constexpr PieceForm form = c.form();
  constexpr int kWarps = t.threads() / 32;
  const LiveRows rows = args.rows(c);
  const int64_t live = rows.count();
  const int32_t rank = blockIdx.y;
  const uint32_t first = args.first(c) + rank * c.share;
  const int64_t begin = live * blockIdx.x / gridDim.x, end = live * (blockIdx.x + 1) / gridDim.x;
  void *pieces = args.pieces(c);

  // Every thread gets the sum of `mine` over the block, and over the threads before it.
  auto place_of = [&](int32_t mine, int32_t &before) {
    before = warp_prefix(mine);
    if (lane_id() == 31)
      sums[warp_id()] = before + mine;
    __syncthreads();
    int32_t all = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp_id())
        before += sums[w];
      all += sums[w];
    }
    __syncthreads();
    return all;
  };

  int32_t hits = 0, unused;
  for (int64_t i = threadIdx.x; i < begin; i += t.threads())
    hits += args.goes(c, rows.row(i), first);
  int32_t count = place_of(hits, unused);
  for (int64_t step = begin; step < end; step += t.threads()) {
    const int32_t n = least(end - step, t.threads());
    const bool mine = threadIdx.x < n;
    const int64_t row = mine ? rows.row(step + threadIdx.x) : 0;
    const bool goes = mine && args.goes(c, row, first);
    int32_t place;
    const int32_t all = place_of(goes, place);
    place = goes ? count + place : -1;
    places[threadIdx.x] = place;
    if (mine)
      args.slot(c)[row * c.size + rank] = goes ? rank * c.room + place : -1;
    __syncthreads();
    for (int i = warp_id(); i < n; i += kWarps) {
      const int64_t to = places[i];
      if (to < 0)
        continue;
      const int64_t from = rows.row(step + i);
      copy_row<DType::i32>(form.ids(pieces, rank, to), args.ids + from * c.top_k, c.top_k, lane_id(), 32);
      copy_row<DType::f32>(form.weights(pieces, rank, to), args.weights + from * c.top_k, c.top_k, lane_id(), 32);
      copy_row<c.type>(form.values(pieces, rank, to), element<c.type>(args.x, from * c.ld_x), c.cols, lane_id(), 32);
    }
    count += all;
    __syncthreads();
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
    *(int32_t *)form.count(pieces, rank) = count;
    args.units(c)[rank] = form.units(count);
  }
}

} // namespace k31::kernels::pack
