// Host kernel of attn.short_conv: tasks share the channels, in blocks of 64; a block walks all segments.
// The last taps - 1 inputs of a block stay in registers, so each input is loaded once, and a window is written only after
// everything that the task needs from it was read: slot_in may be slot_out.
#include "codegen/kernels/attn/short_conv.h"
#include "codegen/kernels/common/host.h"

namespace k31::kernels::short_conv {
extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

constexpr int kBlock = 4; // vectors of a channel block

// Tap J of 16 channels that have four taps each.
template <int J> K31_INLINE f32x16 fourth(f32x16 a, f32x16 b, f32x16 c, f32x16 d) {
  auto lo = __builtin_shufflevector(a, b, J, J + 4, J + 8, J + 12, J + 16, J + 20, J + 24, J + 28);
  auto hi = __builtin_shufflevector(c, d, J, J + 4, J + 8, J + 12, J + 16, J + 20, J + 24, J + 28);
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// The taps of n channels from `channel` on, one vector a tap.
K31_INLINE void load_taps(const void *w, int64_t channel, int n, f32x16 *taps) {
  const Config &c = k31_config;
  int64_t at = channel * c.taps;
  if (c.taps == 4 && n == kLanes) {
    f32x16 v[4];
    for (int i = 0; i < 4; ++i)
      v[i] = load16(w, c.w_type, at + kLanes * i);
    taps[0] = fourth<0>(v[0], v[1], v[2], v[3]), taps[1] = fourth<1>(v[0], v[1], v[2], v[3]);
    taps[2] = fourth<2>(v[0], v[1], v[2], v[3]), taps[3] = fourth<3>(v[0], v[1], v[2], v[3]);
    return;
  }
  for (int j = 0; j < c.taps; ++j) {
    taps[j] = splat(0);
    for (int l = 0; l < n; ++l)
      taps[j][l] = load(w, c.w_type, at + l * c.taps + j);
  }
}

// V vectors of channels from `channel` on; n lanes of each are used (n < 16 only when V is 1).
template <int V> K31_INLINE void block(const Args *args, int64_t channel, int n) {
  const Config &c = k31_config;
  const int past = c.taps - 1;
  f32x16 taps[V][kMaxTaps], window[V][kMaxTaps];
  for (int v = 0; v < V; ++v)
    load_taps(args->w, channel + v * kLanes, n, taps[v]);
  for (int64_t s = 0; s < args->batch.counts[1]; ++s) {
    const Segment &segment = args->batch.segments[s];
    for (int v = 0; v < V; ++v)
      for (int j = 0; j < past; ++j)
        window[v][j] = segment.slot_in < 0
                           ? splat(0)
                           : load_part(args->window, c.window_type,
                                       ((int64_t)segment.slot_in * past + j) * c.channels + channel + v * kLanes, n);
    for (int64_t r = segment.row_begin; r < (int64_t)segment.row_begin + segment.length; ++r)
      for (int v = 0; v < V; ++v) {
        f32x16 now = load_part(args->x, c.x_type, r * c.ld_x + channel + v * kLanes, n);
        f32x16 y = splat(0);
        for (int j = 0; j < past; ++j)
          y += taps[v][j] * window[v][j];
        y += taps[v][past] * now;
        for (int j = 0; j + 1 < past; ++j)
          window[v][j] = window[v][j + 1];
        if (past > 0)
          window[v][past - 1] = now;
        if (c.epilogue) {
          float in[kLanes], out[kLanes];
          memcpy(in, &y, sizeof in);
          k31_region_0(in, out);
          memcpy(&y, out, sizeof out);
        }
        store_part(args->out, c.out_type, r * c.ld_out + channel + v * kLanes, y, n);
      }
    for (int v = 0; v < V; ++v)
      for (int j = 0; j < past; ++j)
        store_part(args->window, c.window_type, ((int64_t)segment.slot_out * past + j) * c.channels + channel + v * kLanes,
                   window[v][j], n);
  }
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  constexpr int64_t kWidth = kBlock * kLanes;
  const int64_t channels = k31_config.channels;
  Range blocks = share((channels + kWidth - 1) / kWidth, task, tasks);
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    int64_t channel = b * kWidth;
    if (channel + kWidth <= channels) {
      block<kBlock>(args, channel, kLanes);
      continue;
    }
    for (; channel < channels; channel += kLanes)
      block<1>(args, channel, channels - channel < kLanes ? (int)(channels - channel) : kLanes);
  }
}

} // namespace k31::kernels::short_conv
