// Host kernel of attn.append: tasks share the live rows; each row goes to its own place in the cache.
#include "codegen/kernels/attn/append.h"
#include "codegen/kernels/common/fp8_lanes.h"

namespace k31::kernels::append {
extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

// Codes of n values, and their scale.
K31_INLINE void quantise(const Args *args, int64_t from, int n, uint8_t *codes, uint8_t *scale_to) {
  const Config &c = k31_config;
  u32x16 largest = (u32x16)0u;
  for (int i = 0; i < n; i += kLanes) {
    u32x16 v = (u32x16)load_part(args->x, c.x_type, from + i, n - i < kLanes ? n - i : kLanes) & 0x7fffffffu;
    largest = __builtin_elementwise_max(largest, v);
  }
  uint32_t most = 0;
  for (int l = 0; l < kLanes; ++l)
    most = largest[l] > most ? largest[l] : most;
  float scale = float_of(scale_bits(most)), inverse = float_of(inverse_scale_bits(scale_bits(most)));
  if (c.cache_type == DType::i8 && most < kNotFinite) {
    const float largest = float_of(most) > kLeastMagnitude ? float_of(most) : kLeastMagnitude;
    scale = largest / kLargestInteger, inverse = kLargestInteger / largest;
  }
  for (int i = 0; i < n; i += kLanes) {
    const int part = n - i < kLanes ? n - i : kLanes;
    f32x16 v = load_part(args->x, c.x_type, from + i, part) * inverse;
    u8x16 coded = inverse == 0 ? (u8x16)(uint8_t)0 : c.cache_type == DType::i8 ? encode_i8(v) : encode_f8(v);
    memcpy(codes + i, &coded, part);
  }
  memcpy(scale_to, &scale, 4);
}

// All codes of a cache row, or columns behind them.
K31_INLINE void append_coded(const Args *args, int64_t cache_row, int64_t from) {
  const Config &c = k31_config;
  uint8_t *pages = (uint8_t *)args->pages;
  if (c.cache_type == DType::i8)
    return quantise(args, from, c.codes, pages + key_at(cache_row, c.codes), pages + key_scale_at(cache_row, c.codes));
  uint8_t *row = pages + cache_row * coded_row_bytes(c.codes, c.width);
  if (c.begin == 0) {
    for (int i = 0; i < c.codes; i += kRowScaleCodes)
      quantise(args, from + i, c.codes - i < kRowScaleCodes ? c.codes - i : kRowScaleCodes, row + i,
               row + row_scales_at(c.codes) + i / kRowScaleCodes * 4);
    return;
  }
  uint8_t *rest = row + row_rest_at(c.codes) + (c.begin - c.codes) * 2;
  for (int i = 0; i < c.cols; i += kLanes) {
    const int n = c.cols - i < kLanes ? c.cols - i : kLanes;
    store_part(rest, DType::bf16, i, load_part(args->x, c.x_type, from + i, n), n);
  }
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const Batch &batch = args->batch;
  Range rows = share(batch.counts[0], task, tasks);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    int64_t s = batch.row_segment[r];
    const int64_t place = cache_row(batch.block_table + s * c.blocks, position_of(batch.segments[s], r));
    int64_t to = place * c.width + c.begin;
    int64_t from = r * c.ld_x;
    if (c.codes) {
      append_coded(args, place, from);
      continue;
    }
    if (c.x_type == c.cache_type) {
      int64_t size = bytes_of(c.x_type);
      memcpy((char *)args->pages + to * size, (const char *)args->x + from * size, c.cols * size);
      continue;
    }
    for (int i = 0; i < c.cols; i += kLanes) {
      int n = c.cols - i < kLanes ? c.cols - i : kLanes;
      store_part(args->pages, c.cache_type, to + i, load_part(args->x, c.x_type, from + i, n), n);
    }
  }
}

} // namespace k31::kernels::append
