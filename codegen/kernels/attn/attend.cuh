// CUDA kernel of attn.attend: bf16 and codes by products of warp groups (attend_products.cuh), other types by plain fp32
// products, a warp a head, a key at a time. A block takes one (row, group of heads) and walks its keys with a running maximum, in
// base 2. Few rows: parts of the keys go to several blocks, which leave sums, maxima and totals in the workspace, meet, and merge
// a share each.
#pragma once
#include "codegen/kernels/attn/attend_products.cuh"

namespace k31::kernels::attend {

template <Config c, Tile t> struct Plain {
  static constexpr int kGroup = t.threads() / 32, kLatent = (c.latent + 31) / 32, kShared = (c.shared + 31) / 32;

  const Args &args;
  K31_DEVICE Plain(const Args &args) : args(args) {}

  K31_DEVICE void run(const Unit &u) {
    const int lane = lane_id(), h = warp_id();
    if (h >= u.heads)
      return;
    const int64_t head = u.head + h;
    const Keys keys = keys_of<c>(args, u.row);
    float q[kLatent], q_shared[kShared > 0 ? kShared : 1], sums[kLatent], top = minus_infinity(), total = 0;
#pragma unroll
    for (int i = 0; i < kLatent; ++i) {
      const int d = lane + 32 * i;
      q[i] = d < c.latent ? load<c.q_type>(args.q_latent, u.row * c.ld_q + head * c.latent + d) * (c.scale * kLog2e) : 0;
      sums[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < kShared; ++i) {
      const int d = lane + 32 * i;
      q_shared[i] = d < c.shared
                        ? load<c.shared_type>(args.q_shared, u.row * c.ld_shared + head * c.head_shared + c.shared_begin + d) *
                              (c.scale * kLog2e)
                        : 0;
    }
    for (int64_t entry = u.first; entry < u.end; ++entry) {
      const int64_t row = keys.row(entry);
      if (row < 0)
        continue;
      float key[kLatent], dot = 0;
#pragma unroll
      for (int i = 0; i < kLatent; ++i) {
        const int d = lane + 32 * i;
        key[i] = d < c.latent ? cached<c>(args, row, d) : 0;
        dot += q[i] * key[i];
      }
#pragma unroll
      for (int i = 0; i < kShared; ++i) {
        const int d = lane + 32 * i;
        if (d < c.shared)
          dot += q_shared[i] * cached<c>(args, row, c.latent + d);
      }
      dot = warp_sum(dot);
      const float now = fmaxf(top, dot), factor = exp2f(top - now), weight = exp2f(dot - now);
      top = now, total = total * factor + weight;
#pragma unroll
      for (int i = 0; i < kLatent; ++i)
        sums[i] = sums[i] * factor + weight * key[i];
    }
    const float inverse = total == 0 ? 0 : 1 / total;
#pragma unroll
    for (int i = 0; i < kLatent; ++i) {
      const int d = lane + 32 * i;
      if (d >= c.latent)
        continue;
      if (u.part)
        u.part[h * c.latent + d] = sums[i];
      else
        store<c.out_type>(out_of<c>(args), u.row * c.ld_out + head * c.latent + d, sums[i] * inverse);
    }
    if (lane == 0) {
      if (u.part)
        u.part[kGroup * c.latent + h] = top, u.part[kGroup * (c.latent + 1) + h] = total;
      else if constexpr (c.lse != 0)
        lse_of<c>(args)[u.row * c.heads + head] = lse_value<c>(top, total);
    }
  }
};

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (t.products(c)) {
    if (aligned16(args.pages))
      return Products<c, t>(args).run(Shares<c, t, Products<c, t>::kGroup>(args));
  }
  const Shares<c, t, Plain<c, t>::kGroup> shares(args);
  Plain<c, t> kernel(args);
  Unit u;
  for (int i = 0; shares.unit(i, u); ++i)
    kernel.run(u);
  shares.template merge<t.threads()>();
}

} // namespace k31::kernels::attend
