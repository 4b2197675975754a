// What the host kernels with a convolution do for 16 neighbouring channels: taps, one token, its region.
// Of a kernel that gives its Config as the constant Of::config() and calls the region by Of::activate(in, out).
#pragma once
#include "codegen/kernels/attn/short_conv.h"
#include "codegen/kernels/common/host.h"

namespace k31::kernels::short_conv {

// Tap J of 16 channels that have four taps each.
template <int J> K31_INLINE f32x16 fourth(f32x16 a, f32x16 b, f32x16 c, f32x16 d) {
  auto lo = __builtin_shufflevector(a, b, J, J + 4, J + 8, J + 12, J + 16, J + 20, J + 24, J + 28);
  auto hi = __builtin_shufflevector(c, d, J, J + 4, J + 8, J + 12, J + 16, J + 20, J + 24, J + 28);
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

template <class Of> struct Channels {
  // The taps of n channels from `channel` on, one vector a tap.
  K31_INLINE void load_taps(const void *w, int64_t channel, int n, f32x16 *taps) {
    const Config &c = Of::config();
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

  // Window input j of the n channels, as the segment finds it.
  K31_INLINE f32x16 load_input(const void *window, const Segment &segment, int j, int64_t channel, int n) {
    const Config &c = Of::config();
    return segment.slot_in < 0
               ? splat(0)
               : load_part(window, c.window_type, ((int64_t)segment.slot_in * (c.taps - 1) + j) * c.channels + channel, n);
  }
  K31_INLINE void store_input(void *window, const Segment &segment, int j, int64_t channel, int n, f32x16 v) {
    const Config &c = Of::config();
    store_part(window, c.window_type, ((int64_t)segment.slot_out * (c.taps - 1) + j) * c.channels + channel, v, n);
  }

  // What the region makes of the sum of one token; the window moves on by it.
  K31_INLINE f32x16 step(const f32x16 *taps, f32x16 *window, f32x16 now) {
    const Config &c = Of::config();
    const int past = c.taps - 1;
    f32x16 y = splat(0);
    for (int j = 0; j < past; ++j)
      y += taps[j] * window[j];
    y += taps[past] * now;
    for (int j = 0; j + 1 < past; ++j)
      window[j] = window[j + 1];
    if (past > 0)
      window[past - 1] = now;
    if (c.epilogue) {
      float in[kLanes], out[kLanes];
      memcpy(in, &y, sizeof in);
      Of::activate(in, out);
      memcpy(&y, out, sizeof out);
    }
    return y;
  }
};

} // namespace k31::kernels::short_conv
