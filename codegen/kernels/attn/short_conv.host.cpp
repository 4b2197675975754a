// Host kernel of attn.short_conv: tasks share the channels, in blocks of 64; a block walks all segments.
// The last taps - 1 inputs of a block stay in registers, so each input is loaded once, and a window is written only after
// everything that the task needs from it was read: slot_in may be slot_out.
#include "codegen/kernels/attn/short_conv_channels.h"

namespace k31::kernels::short_conv {
extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {
struct Kernel {
  K31_INLINE const Config &config() { return k31_config; }
  K31_INLINE void activate(const float *in, float *out) { k31_region_0(in, out); }
};
} // namespace
using Vector = Channels<Kernel>;

constexpr int kBlock = 4; // vectors of a channel block

// V vectors of channels from `channel` on; n lanes of each are used (n < 16 only when V is 1).
template <int V> K31_INLINE void block(const Args *args, int64_t channel, int n) {
  const Config &c = k31_config;
  const int past = c.taps - 1;
  f32x16 taps[V][kMaxTaps], window[V][kMaxTaps];
  for (int v = 0; v < V; ++v)
    Vector::load_taps(args->w, channel + v * kLanes, n, taps[v]);
  for (int64_t s = 0; s < args->batch.counts[1]; ++s) {
    const Segment &segment = args->batch.segments[s];
    for (int v = 0; v < V; ++v)
      for (int j = 0; j < past; ++j)
        window[v][j] = Vector::load_input(args->window, segment, j, channel + v * kLanes, n);
    for (int64_t r = segment.row_begin; r < (int64_t)segment.row_begin + segment.length; ++r)
      for (int v = 0; v < V; ++v) {
        f32x16 now = load_part(args->x, c.x_type, r * c.ld_x + channel + v * kLanes, n);
        f32x16 y = Vector::step(taps[v], window[v], now);
        store_part(args->out, c.out_type, r * c.ld_out + channel + v * kLanes, y, n);
      }
    for (int v = 0; v < V; ++v)
      for (int j = 0; j < past; ++j)
        Vector::store_input(args->window, segment, j, channel + v * kLanes, n, window[v][j]);
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
