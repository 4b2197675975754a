// coll.pack of few rows: a warp a row and rank, and no meeting of warps. Each warp looks at the choices of all rows, 32 rows at a
// time in loads of neighbouring words, and keeps a bit for each row that goes to the rank: its row's place is the number of bits
// before it. With several ranks in x the rows are those of the capacity, where dead ones go nowhere.
#pragma once
#include "codegen/kernels/coll/pack.tile.h"
#include "codegen/kernels/common/reduce.cuh"

namespace k31::kernels::pack {

template <Config c, Tile t> K31_DEVICE void pack_few(const Args &args) {
  constexpr int kWarps = t.threads() / 32;
  constexpr PieceForm form = c.form();
  const int32_t rank = blockIdx.y, rows = c.groups == 1 ? *args.live : c.groups * c.capacity;
  const uint32_t first = args.first(c) + rank * c.share;
  const int32_t own = blockIdx.x * kWarps + warp_id(); // the first warp has a row even when none lives: it tells the count
  int32_t place = 0, count = 0;
  bool lives = false, goes = false;
  for (int32_t base = 0; base < rows; base += 32) {
    uint32_t bits = 0; // of rows base ..
#pragma unroll 16
    for (int32_t i = 0; i < c.top_k; ++i) {
      const int32_t choice = 32 * i + lane_id();
      const int32_t at = min(base * c.top_k + choice, rows * c.top_k - 1); // a branch would part the loads
      bits |= (uint32_t)((uint32_t)args.ids[at] - first < (uint32_t)c.share) << choice / c.top_k;
    }
    const int32_t row = base + lane_id();
    bool here = row < rows;
    if constexpr (c.groups > 1)
      here = here && row % c.capacity < args.live[row / c.capacity];
    const uint32_t alive = __ballot_sync(kAllLanes, here);
    bits = alive & __reduce_or_sync(kAllLanes, bits);
    count += __popc(bits);
    const int32_t at = own - base; // number of the warp's own row among these
    if (at >= 32)
      place += __popc(bits);
    else if (at >= 0)
      place += __popc(bits & ((1u << at) - 1)), goes = bits >> at & 1, lives = alive >> at & 1;
  }
  if (own == 0 && lane_id() == 0) {
    *(int32_t *)form.count(args.pieces(c), rank) = count;
    args.units(c)[rank] = form.units(count);
  }
  if (own >= rows || !lives)
    return;
  if (lane_id() == 0)
    args.slot(c)[(int64_t)own * c.size + rank] = goes ? rank * c.room + place : -1;
  if (!goes)
    return;
  void *pieces = args.pieces(c);
  int32_t *ids = (int32_t *)form.ids(pieces, rank, place);
  float *weights = (float *)form.weights(pieces, rank, place);
  for (int32_t i = lane_id(); i < c.top_k; i += 32) {
    const int32_t id = args.ids[own * c.top_k + i];
    const float weight = args.weights[own * c.top_k + i];
    ids[i] = id, weights[i] = weight;
  }
  copy_row_at_once<c.type, c.cols>(form.values(pieces, rank, place), element<c.type>(args.x, (int64_t)own * c.ld_x), lane_id());
}

} // namespace k31::kernels::pack
