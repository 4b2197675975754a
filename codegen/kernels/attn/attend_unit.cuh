// How the blocks of attn.attend share rows, heads and keys, and how parts of a row meet.
#pragma once
#include "codegen/kernels/attn/attend.tile.h"
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/meet.cuh"
#include "codegen/kernels/common/fp8.cuh"

namespace k31::kernels::attend {

constexpr float kLog2e = 1.44269504088896341f, kLn2 = 0.693147180559945309f;
K31_DEVICE float minus_infinity() { return __uint_as_float(0xff800000u); }

template <Config c, Tile t> K31_DEVICE Meeting &meeting_of(int unit) {
  static __device__ Meeting all[t.blocks];
  return all[unit];
}

// Keys of one row: all positions up to its own, or the selected ones.
struct Keys {
  const int32_t *table, *indices;
  int64_t count;
  // -1: entry i counts nothing.
  K31_DEVICE int64_t position(int64_t i) const { return i >= count ? -1 : indices ? indices[i] : i; }
  // Row of the cache, or -1.
  K31_DEVICE int64_t row(int64_t i) const {
    const int64_t at = position(i);
    return at < 0 ? -1 : cache_row(table, at);
  }
};
template <Config c> K31_DEVICE Keys keys_of(const Args &args, int64_t row) {
  const int64_t s = args.batch.row_segment[row];
  const int32_t *table = args.batch.block_table + s * c.blocks;
  if constexpr (c.top_k > 0)
    return {table, (const int32_t *)args.tail[0] + row * c.top_k, c.top_k};
  else
    return {table, nullptr, position_of(args.batch.segments[s], row) + 1};
}
template <Config c> K31_DEVICE void *out_of(const Args &args) { return args.tail[c.top_k > 0 ? 1 : 0]; }
template <Config c> K31_DEVICE float *lse_of(const Args &args) { return (float *)args.tail[c.top_k > 0 ? 2 : 1]; }
template <Config c> K31_DEVICE float *workspace_of(const Args &args) {
  return (float *)args.tail[(c.top_k > 0 ? 1 : 0) + 1 + (c.lse ? 1 : 0)];
}

// Value d of a row of the cache.
template <Config c> K31_DEVICE float cached(const Args &args, int64_t row, int d) {
  if constexpr (c.cache_type == DType::f8) {
    const unsigned char *at = (const unsigned char *)args.pages + row * c.row_bytes();
    if (d >= c.latent)
      return load<DType::bf16>(at + row_rest_at(c.latent), d - c.latent);
    return decode_code(at[d]) * *(const float *)(at + row_scales_at(c.latent) + d / kRowScaleCodes * 4);
  } else {
    return load<c.cache_type>(args.pages, row * (c.latent + c.shared) + d);
  }
}

// No key at all: the result is zero and its log-sum-exp is -inf.
template <Config c> K31_DEVICE float lse_value(float top, float total) {
  return total == 0 ? minus_infinity() : (top + log2f(total)) * kLn2;
}

// The work of a block: entries [first, end) of the keys of `heads` heads of a row.
struct Unit {
  int64_t row, first, end;
  int head, heads;
  float *part; // where sums go that are merged later; null: straight to the result
};

// This block's units, of `group` heads each: whole ones in turns, or when they are few one part of one.
template <Config c, Tile t, int group> struct Shares {
  static constexpr int kGroups = (c.heads + group - 1) / group;
  const Args &args;
  int64_t units;
  int parts, member;

  K31_DEVICE Shares(const Args &args) : args(args) {
    units = (int64_t)args.batch.counts[0] * kGroups;
    parts = units > 0 && units * 2 <= gridDim.x ? (int)(gridDim.x / units) : 1;
    member = (int)blockIdx.x % parts;
  }
  K31_DEVICE Unit whole(int64_t i) const {
    Unit u{i / kGroups, 0, 0, (int)(i % kGroups) * group, 0, nullptr};
    u.heads = least(group, c.heads - u.head);
    u.end = keys_of<c>(args, u.row).count;
    return u;
  }
  // Unit i of this block; false past the last one.
  K31_DEVICE bool unit(int i, Unit &u) const {
    const int64_t at = parts == 1 ? blockIdx.x + (int64_t)i * gridDim.x : blockIdx.x / parts;
    if (at >= units || (parts > 1 && i > 0))
      return false;
    u = whole(at);
    if (parts > 1) {
      const int64_t end = u.end, size = ceil_div(ceil_div(end, t.keys), parts) * t.keys; // of a part: whole tiles
      u.first = member * size < end ? member * size : end;
      u.end = u.first + size < end ? u.first + size : end;
      u.part = workspace_of<c>(args) + blockIdx.x * part_floats(c, t);
    }
    return true;
  }
  // Merges the parts of a unit: each of its blocks writes its share of the values. Threads: the block's first ones, all of which
  // come here.
  template <int Threads> K31_DEVICE void merge() const {
    const int64_t at = blockIdx.x / parts;
    if (parts == 1 || at >= units)
      return;
    meet<Threads>(meeting_of<c, t>((int)at), parts);
    const Unit u = whole(at);
    const float *part = workspace_of<c>(args) + at * parts * part_floats(c, t);
    const int64_t stride = part_floats(c, t);
    for (int i = member * Threads + threadIdx.x; i < u.heads * c.latent; i += parts * Threads) {
      const int h = i / c.latent, d = i % c.latent;
      float top = minus_infinity(), total = 0, sum = 0;
      for (int p = 0; p < parts; ++p)
        top = fmaxf(top, __ldcg(part + p * stride + group * c.latent + h));
      const float base = top == minus_infinity() ? 0 : top;
      for (int p = 0; p < parts; ++p) {
        const float *from = part + p * stride;
        const float weight = exp2f(__ldcg(from + group * c.latent + h) - base);
        total += weight * __ldcg(from + group * (c.latent + 1) + h), sum += weight * __ldcg(from + i);
      }
      store<c.out_type>(out_of<c>(args), u.row * c.ld_out + (int64_t)(u.head + h) * c.latent + d, total == 0 ? 0 : sum / total);
      if (c.lse != 0 && d == 0)
        lse_of<c>(args)[u.row * c.heads + u.head + h] = lse_value<c>(top, total);
    }
  }
};

} // namespace k31::kernels::attend
