// The queries of attn.attend's products: rows of 64 columns in shared memory, in chunks (128-byte swizzle), heads past a unit's
// and columns past the last are 0. bf16 in whole 16-byte words goes by cp.async, all words under way at once, and the next unit's
// are brought into the second-level cache meanwhile; other queries come through registers.
#pragma once
#include "codegen/kernels/attn/attend_tiles.cuh"
#include "codegen/kernels/common/mma.cuh"

namespace k31::kernels::attend {

template <Config c, Tile t> struct Queries {
  using Keys = Tiles<c, t>;
  static constexpr int kGroup = Keys::kGroup, kThreads = Keys::kConsumers, kWords = Keys::kChunks * 8; // of 16 bytes, a head
  static constexpr int kChunkBytes = kGroup * 128, kBytes = Keys::kChunks * kChunkBytes;
  static constexpr bool kPlain = c.q_type == DType::bf16 && c.shared_type == DType::bf16;

  const Args &args;
  unsigned char *const place;

  K31_DEVICE bool latent_aligned() const { return c.ld_q % 8 == 0 && aligned16(args.q_latent); }
  K31_DEVICE bool shared_aligned() const {
    return c.ld_shared % 8 == 0 && c.head_shared % 8 == 0 && c.shared_begin % 8 == 0 && aligned16(args.q_shared);
  }
  // Eight values as bf16.
  template <DType T> K31_DEVICE static uint4 eight(const void *p, int64_t at, bool aligned) {
    float v[8];
    if (aligned) {
      load_values<T, 8>(p, at, v);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        v[e] = load<T>(p, at + e);
    }
    return make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
  }
  // By all consumers, who meet afterwards.
  K31_DEVICE void fill(const Unit &u) const {
    const int64_t latent = u.row * c.ld_q + (int64_t)u.head * c.latent;
    const int64_t shared = u.row * c.ld_shared + (int64_t)u.head * c.head_shared + c.shared_begin;
    const bool aligned = latent_aligned(), aligned_shared = shared_aligned();
    if constexpr (kPlain) {
      if (aligned && aligned_shared) {
#pragma unroll 4
        for (int i = threadIdx.x; i < kGroup * kWords; i += kThreads) {
          const int head = i / kWords, d = i % kWords * 8;
          const uint16_t *from = d < c.latent
                                     ? (const uint16_t *)args.q_latent + latent + (int64_t)head * c.latent + d
                                     : (const uint16_t *)args.q_shared + shared + (int64_t)head * c.head_shared + d - c.latent;
          const bool there = head < u.heads && d < Keys::kWidth;
          copy_async16(place + d / 64 * kChunkBytes + head * 128 + ((d / 8 ^ head) & 7) * 16, there ? from : args.q_latent,
                       there ? 16 : 0);
        }
        copy_commit(), copy_wait<0>();
        fence_async_proxy();
        return;
      }
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < kGroup * kWords; i += kThreads) {
      const int head = i / kWords, d = i % kWords * 8;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (head < u.heads && d < c.latent)
        v = eight<c.q_type>(args.q_latent, latent + (int64_t)head * c.latent + d, aligned);
      else if (head < u.heads && d < Keys::kWidth)
        v = eight<c.shared_type>(args.q_shared, shared + (int64_t)head * c.head_shared + d - c.latent, aligned_shared);
      *(uint4 *)(place + d / 64 * kChunkBytes + head * 128 + ((d / 8 ^ head) & 7) * 16) = v;
    }
    fence_async_proxy();
  }
  // By all consumers: the words of a later unit as far as the second-level cache.
  K31_DEVICE void prefetch(const Unit &u) const {
    if (!kPlain || !latent_aligned() || (int)threadIdx.x >= u.heads)
      return;
    prefetch_to_l2((const uint16_t *)args.q_latent + u.row * c.ld_q + (int64_t)(u.head + threadIdx.x) * c.latent, c.latent * 2);
    if constexpr (c.shared > 0) {
      if (shared_aligned())
        prefetch_to_l2((const uint16_t *)args.q_shared + u.row * c.ld_shared + (int64_t)(u.head + threadIdx.x) * c.head_shared +
                           c.shared_begin,
                       c.shared * 2);
    }
  }
};

} // namespace k31::kernels::attend
