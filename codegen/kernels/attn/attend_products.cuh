// The bf16 form of attn.attend: products of warp groups, keys as rows and heads as columns: any number of heads fills
// the products, 96 as two groups of 48.
//
// A block holds the queries Q [heads, width] of one (row, group of heads) and walks its keys in tiles of 64, which a warp group
// or two of producers bring (attend_tiles.cuh). Two warp groups of consumers compute
//   S^T [64 keys, heads] = K Q^T       each over half of the columns; then they hand each other what the other one's heads need
//   P = exp2(S - top)                  each for half of the heads; bf16, back to shared memory as [heads, keys]
//   O^T [latent, heads] += V^T P^T     each for half of the latent columns; V^T is the same chunk, read transposed
// The subtracted top of a head stays until a score exceeds it by more than kSlack: the weights are then at most 2^kSlack, the
// sums are as exact as before, and the sums in registers are hardly ever rescaled.
// Halves of columns, not of heads, so that the tensor cores read a tile once for its scores: with 24 heads a product waits for
// shared memory, with 48 for itself. The scores of the next tile are issued behind the sums of this one, without a branch
// between them, on which the compiler would wait for all products.
//
// Who may touch shared memory when, between what barriers:
//   query, tiles   read by products, which each group has waited for (wgmma_wait) before it arrives anywhere. `query` and `top`
//                  are written again behind the two all_meet of finish; a tile by the producers behind its `empty`.
//   valid          read in softmax, written by the producers behind `empty`, at which every consumer arrives.
//   halves         written between the all_meet at the end of softmax and the one of exchange, read behind that one and before
//                  any_of_all.
//   weights        written between any_of_all, which all reach with their products and totals of the tile before done, and
//                  all_meet; until the weights are written, raise_tops keeps a group's maxima in its own half of them.
//   change, top    written in raise_tops, between the same two; read by others behind all_meet.
//   totals         each by one thread, read by others behind all_meet in finish.
#pragma once
#include "codegen/kernels/attn/attend_queries.cuh"
#include "codegen/kernels/common/math.cuh"
#include "codegen/kernels/common/wgmma.cuh"

namespace k31::kernels::attend {

constexpr float kSlack = 8; // powers of two

template <Config c, Tile t> struct Products : Tiles<c, t> {
  using Base = Tiles<c, t>;
  using Base::args, Base::tiles, Base::tile_at, Base::valid, Base::full, Base::empty;
  using Base::kGroup, Base::kKeys, Base::kChunks, Base::kWidth, Base::kChunkBytes, Base::kConsumers, Base::kCodes;
  static constexpr int kHalf = kGroup / 2, kMine = Base::kLatentChunks / 2, kQueryChunk = Queries<c, t>::kChunkBytes;

  const int group;        // of four warps
  unsigned char *query;   // [chunk, head] rows of 64 columns
  unsigned char *weights; // [head] rows of 64 keys
  float *top, *change;    // [heads]
  float *totals;          // [heads]: sums of weights
  float4 *halves;         // [eight heads, thread]: scores over the other group's columns

  K31_DEVICE Products(const Args &args) : Base(args), group(__shfl_sync(kAllLanes, (int)threadIdx.x / 128, 0)) {
    unsigned char *at = shared_memory();
    query = at, at += Queries<c, t>::kBytes;
    tiles = at, at += 2 * Base::kTileBytes;
    weights = at, at += kGroup * 128;
    valid = (float *)at, at += 2 * kKeys * 4;
    top = (float *)at, at += kGroup * 4;
    change = (float *)at, at += kGroup * 4;
    totals = (float *)at, at += kGroup * 4;
    halves = (float4 *)at, at += kGroup * kKeys * 4;
    full = (Barrier *)at, empty = full + 2;
  }

  // ---- consumers
  K31_DEVICE static int warp() { return threadIdx.x / 32 % 4; } // of the warp group
  K31_DEVICE static void all_meet() { warps_meet(1, kConsumers); }
  K31_DEVICE void group_meets() const { warps_meet(2 + group, 128); }
  K31_DEVICE static bool any_of_all(bool mine) {
    uint32_t any;
    asm volatile(
        "{\n.reg .pred mine, any;\nsetp.ne.b32 mine, %1, 0;\nbar.red.or.pred any, 1, %2, mine;\nselp.b32 %0, 1, 0, any;\n}\n"
        : "=r"(any)
        : "r"((uint32_t)mine), "n"(kConsumers)
        : "memory");
    return any;
  }

  K31_DEVICE void load_query(const Unit &u) const {
    for (int i = threadIdx.x; i < kGroup; i += kConsumers)
      top[i] = minus_infinity(), totals[i] = 0;
    Queries<c, t>{args, query}.fill(u);
    all_meet();
  }

  // Scores over this warp group's columns: half of the latent ones, half of the shared ones. Not yet scaled. Of eight heads,
  // entries 0, 1: key warp * 16 + lane / 4; 2, 3: eight keys on.
  using Scores = float[kGroup / 8][4];
  K31_DEVICE void begin_scores(uint32_t tile, Scores &all) const {
    barrier_wait(full + tile % 2, tile / 2 % 2);
    fence_async_proxy(); // the producers wrote it as ordinary memory
    const uint64_t a = matrix_descriptor(tile_at(tile)), b = matrix_descriptor(query);
    const auto add = [&](int chunk, int step, bool sums) { // 16 columns
      wgmma_bf16(all, a + chunk * (kChunkBytes / 16) + step * 2, b + chunk * (kQueryChunk / 16) + step * 2, sums);
    };
    wgmma_begin();
#pragma unroll
    for (int j = 0; j < kMine; ++j)
#pragma unroll
      for (int step = 0; step < 4; ++step)
        add(group * kMine + j, step, j > 0 || step > 0);
#pragma unroll
    for (int step = 0; step < 2 * (kChunks - Base::kLatentChunks); ++step)
      add(Base::kLatentChunks, group * 2 + step, true);
    wgmma_commit();
  }
  // The scores of this warp group's heads over all columns.
  K31_DEVICE void exchange(const Scores &all, float (&s)[kHalf / 8][4]) const {
    float4 *mine = halves + threadIdx.x, *other = halves + (threadIdx.x ^ 128); // the same keys
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
      const float (&low)[4] = all[n], (&high)[4] = all[n + kHalf / 8];
      other[n * kConsumers] =
          group ? make_float4(low[0], low[1], low[2], low[3]) : make_float4(high[0], high[1], high[2], high[3]);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        s[n][e] = group ? high[e] : low[e];
    }
    all_meet();
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
      const float4 v = mine[n * kConsumers];
      s[n][0] += v.x, s[n][1] += v.y, s[n][2] += v.z, s[n][3] += v.w;
    }
  }

  // New tops of this warp group's heads; `change` is what the sums so far are multiplied by.
  K31_DEVICE void raise_tops(const float (&s)[kHalf / 8][4]) const {
    const int lane = threadIdx.x % 32, thread = threadIdx.x % 128;
    float *most = (float *)(weights + group * kHalf * 128); // [warp, heads], where no weights are in use now
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float v = fmaxf(s[n][e], s[n][e + 2]);
#pragma unroll
        for (int step = 4; step < 32; step *= 2)
          v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, step));
        if (lane < 4)
          most[warp() * kHalf + n * 8 + 2 * lane + e] = v;
      }
    }
    group_meets();
    if (thread < kHalf) {
      const int head = group * kHalf + thread;
      float now = top[head];
      const float before = now;
#pragma unroll
      for (int w = 0; w < 4; ++w)
        now = fmaxf(now, most[w * kHalf + thread]);
      change[head] = exp2f(before - (now == minus_infinity() ? 0 : now));
      top[head] = now;
    }
    group_meets();
  }

  // Scores become weights in shared memory. True when tops were raised.
  K31_DEVICE bool softmax(uint32_t tile, float (&s)[kHalf / 8][4]) const {
    const int lane = threadIdx.x % 32;
    const float low = valid[tile % 2 * kKeys + warp() * 16 + lane / 4],
                high = valid[tile % 2 * kKeys + warp() * 16 + 8 + lane / 4];
    const float2 *tops = (const float2 *)(top + group * kHalf) + lane % 4; // every fourth
    bool above = false;
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
      const float2 limit = tops[n * 4];
      s[n][0] = s[n][0] * (c.scale * kLog2e) + low, s[n][1] = s[n][1] * (c.scale * kLog2e) + low;
      s[n][2] = s[n][2] * (c.scale * kLog2e) + high, s[n][3] = s[n][3] * (c.scale * kLog2e) + high;
      above |= fmaxf(s[n][0], s[n][2]) > limit.x + kSlack || fmaxf(s[n][1], s[n][3]) > limit.y + kSlack;
    }
    const bool raised = any_of_all(above); // and all have left the weights of the tile before
    if (raised)
      raise_tops(s);
    uint32_t pairs[kHalf / 8][2];
#pragma unroll
    for (int n = 0; n < kHalf / 8; ++n) {
      float2 base = tops[n * 4]; // -inf: nothing yet, all weights are exp2(-inf)
      base.x = base.x == minus_infinity() ? 0 : base.x, base.y = base.y == minus_infinity() ? 0 : base.y;
      pairs[n][0] = pack_bf16(exp2_flushed(s[n][0] - base.x), exp2_flushed(s[n][1] - base.y));
      pairs[n][1] = pack_bf16(exp2_flushed(s[n][2] - base.x), exp2_flushed(s[n][3] - base.y));
    }
#pragma unroll
    for (int n = 0; n < kHalf / 8; n += 2) {
      const int head = group * kHalf + (n + lane / 16) * 8 + lane % 8, word = warp() * 2 + lane / 8 % 2;
      void *to = weights + head * 128 + ((word ^ head) & 7) * 16;
      if constexpr (kHalf % 16 == 0)
        store_matrices_transposed(to, pairs[n][0], pairs[n][1], pairs[n + 1][0], pairs[n + 1][1]);
      else if (n + 1 < kHalf / 8)
        store_matrices_transposed(to, pairs[n][0], pairs[n][1], pairs[n + (n + 1 < kHalf / 8)][0],
                                  pairs[n + (n + 1 < kHalf / 8)][1]);
      else
        store_matrices_transposed(to, pairs[n][0], pairs[n][1]);
    }
    fence_async_proxy();
    all_meet();
    return raised;
  }

  // Sum of half of the weights of a head, as they are used; two neighbouring threads have one head.
  K31_DEVICE float half_of_weights(int head) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint4 v = *(const uint4 *)(weights + head * 128 + (((threadIdx.x % 2 * 4 + i) ^ head) & 7) * 16);
      sum += bf16_low(v.x) + bf16_high(v.x) + bf16_low(v.y) + bf16_high(v.y) + bf16_low(v.z) + bf16_high(v.z) + bf16_low(v.w) +
             bf16_high(v.w);
    }
    return sum;
  }

  using Sums = float[kMine][kGroup / 8][4]; // rows: latent columns of this warp group's chunks; columns: heads
  K31_DEVICE void rescale(Sums &o) const {
    const float2 *factors = (const float2 *)change + threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < kGroup / 8; ++n) {
      const float2 f = factors[n * 4];
#pragma unroll
      for (int m = 0; m < kMine; ++m)
        o[m][n][0] *= f.x, o[m][n][1] *= f.y, o[m][n][2] *= f.x, o[m][n][3] *= f.y;
    }
  }
  K31_DEVICE void accumulate(uint32_t tile, Sums &o) const {
    const uint64_t p = matrix_descriptor(weights), v = matrix_descriptor(tile_at(tile) + group * kMine * kChunkBytes);
    wgmma_begin();
#pragma unroll
    for (int m = 0; m < kMine; ++m)
#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step)
        wgmma_bf16<1>(o[m], v + m * (kChunkBytes / 16) + step * 128, p + step * 2);
    wgmma_commit();
  }

  // While the second product runs: the weights as they are used. Two neighbouring threads have one head.
  K31_DEVICE void add_totals(bool raised) const {
    const int thread = threadIdx.x % 128, head = group * kHalf + thread / 2;
    const bool has_head = thread < 2 * kHalf;
    float sum = has_head ? half_of_weights(head) : 0;
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    if (has_head && thread % 2 == 0)
      totals[head] = (raised ? totals[head] * change[head] : totals[head]) + sum;
  }

  // A tile whose scores are under way. With `more` those of the next one stand in line behind its sums afterwards.
  template <bool more> K31_DEVICE void add_tile(uint32_t tile, Scores &all, Sums &o) const {
    wgmma_wait<0>();
    bool raised;
    {
      float s[kHalf / 8][4];
      exchange(all, s);
      raised = softmax(tile, s);
    }
    if (raised)
      rescale(o);
    accumulate(tile, o);
    add_totals(raised);
    if constexpr (more)
      begin_scores(tile + 1, all);
    wgmma_wait<more ? 1 : 0>();
    barrier_arrive(empty + tile % 2);
  }

  K31_DEVICE void consume(const Shares<c, t, kGroup> &shares) const {
    uint32_t tile = 0;
    Unit u;
    for (int i = 0; shares.unit(i, u); ++i) {
      load_query(u);
      if (Unit next; shares.unit(i + 1, next))
        Queries<c, t>{args, query}.prefetch(next);
      Sums o;
#pragma unroll
      for (int m = 0; m < kMine; ++m)
#pragma unroll
        for (int n = 0; n < kGroup / 8; ++n)
          o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0;
      Scores all;
      const uint32_t end = tile + (uint32_t)((u.end - u.first + kKeys - 1) / kKeys);
      if (tile != end) {
        begin_scores(tile, all);
#pragma unroll 1
        for (; tile + 1 != end; ++tile)
          add_tile<true>(tile, all, o);
        add_tile<false>(tile++, all, o);
      }
      finish(shares, i, o);
    }
  }

  // ---- results
  K31_DEVICE void finish(const Shares<c, t, kGroup> &shares, int i, Sums &o) const {
    const int lane = threadIdx.x % 32;
    Unit u;
    shares.unit(i, u);
    all_meet(); // the last rescaling has read `change`, and all totals are there
    for (int h = threadIdx.x; h < kGroup; h += kConsumers) {
      const float total = totals[h];
      change[h] = u.part ? 1 : total == 0 ? 0 : 1 / total;
      if (h < u.heads && u.part)
        u.part[kGroup * c.latent + h] = top[h], u.part[kGroup * (c.latent + 1) + h] = total;
      else if (c.lse != 0 && h < u.heads)
        lse_of<c>(args)[u.row * c.heads + u.head + h] = lse_value<c>(top[h], total);
    }
    all_meet();
    rescale(o);
    if constexpr (c.out_type == DType::bf16) {
      if (!u.part)
        return finish_rows(u, o);
    }
#pragma unroll
    for (int m = 0; m < kMine; ++m)
#pragma unroll
      for (int n = 0; n < kGroup / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int h = n * 8 + lane % 4 * 2 + e % 2, d = (group * kMine + m) * 64 + warp() * 16 + lane / 4 + e / 2 * 8;
          if (h >= u.heads)
            continue;
          if (u.part)
            u.part[h * c.latent + d] = o[m][n][e];
          else
            store<c.out_type>(out_of<c>(args), u.row * c.ld_out + (int64_t)(u.head + h) * c.latent + d, o[m][n][e]);
        }
    all_meet();
  }
  // bf16 rows of heads, turned in shared memory where the queries stood, then written whole.
  K31_DEVICE void finish_rows(const Unit &u, const Sums &o) const {
    const int lane = threadIdx.x % 32;
    constexpr int kWords = c.latent / 8;
#pragma unroll
    for (int m = 0; m < kMine; ++m)
#pragma unroll
      for (int n = 0; n < kGroup / 8; n += 2) { // kGroup is a multiple of 16
        const int h = (n + lane / 16) * 8 + lane % 8, word = (group * kMine + m) * 8 + warp() * 2 + lane / 8 % 2;
        store_matrices_transposed(query + (h * kWords + (word ^ h % 8)) * 16, pack_bf16(o[m][n][0], o[m][n][1]),
                                  pack_bf16(o[m][n][2], o[m][n][3]), pack_bf16(o[m][n + 1][0], o[m][n + 1][1]),
                                  pack_bf16(o[m][n + 1][2], o[m][n + 1][3]));
      }
    all_meet();
    uint16_t *out = (uint16_t *)out_of<c>(args) + u.row * c.ld_out + (int64_t)u.head * c.latent;
    const bool aligned = c.ld_out % 8 == 0 && aligned16(out_of<c>(args));
    const auto word_at = [&](int i) {
      return (const uint4 *)(query + (i / kWords * kWords + (i % kWords ^ i / kWords % 8)) * 16);
    };
    if (aligned) {
#pragma unroll 4
      for (int i = threadIdx.x; i < u.heads * kWords; i += kConsumers)
        *(uint4 *)(out + i * 8) = *word_at(i);
    } else {
      for (int i = threadIdx.x; i < u.heads * kWords; i += kConsumers) {
        const uint4 v = *word_at(i);
        const uint32_t pairs[] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int e = 0; e < 8; ++e)
          out[i * 8 + e] = (uint16_t)(pairs[e / 2] >> e % 2 * 16);
      }
    }
    all_meet();
  }

  // All threads of the block.
  K31_DEVICE void run(const Shares<c, t, kGroup> &shares) const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < 2; ++i)
        barrier_init(full + i, 2 * Base::kProducers), barrier_init(empty + i, kConsumers);
      barrier_init_done();
    }
    __syncthreads();
    if (threadIdx.x >= kConsumers) {
      fewer_registers<kCodes ? 80 : 72>(); // with those of the consumers at most 64 K
      Base::produce(shares);
    } else {
      more_registers<kCodes ? 176 : 208>();
      consume(shares);
      shares.template merge<kConsumers>();
    }
  }
};

} // namespace k31::kernels::attend
