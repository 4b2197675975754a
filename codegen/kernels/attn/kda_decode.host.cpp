// Host kernel of attn.kda_decode: tasks share the (head, segment) pairs. A token of a head is convolved into a buffer that the
// recurrence reads, and what that gives goes to one that the row op reads; both have the element types that tensors would have.
#include "codegen/kernels/attn/kda_decode.h"
#include "codegen/kernels/attn/kda_token.h"
#include "codegen/kernels/attn/short_conv_channels.h"
#include "codegen/kernels/nn/row_groups.h"

using namespace k31::kernels;
using kda_decode::Args, kda_decode::Config, short_conv::kMaxTaps, kda::kMaxDim;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Convolution {
  K31_INLINE const short_conv::Config &config() { return k31_config.conv; }
  K31_INLINE void activate(const float *in, float *out) {
    switch (kda_decode::activation_phase(k31_config)) {
    case 1:
      return row::region<1>(in, out);
    case 2:
      return row::region<2>(in, out);
    case 3:
      return row::region<3>(in, out);
    case 4:
      return row::region<4>(in, out);
    default:
      return row::region<5>(in, out);
    }
  }
};
struct Recurrence {
  K31_INLINE const kda::Config &config() { return k31_config.kda; }
};
struct Row {
  K31_INLINE const row::Config &config() { return k31_config.row; }
};

using Channels = short_conv::Channels<Convolution>;
using Tokens = kda::Tokens<Recurrence>;
constexpr int kVectors = 3 * kMaxDim / kLanes; // of q, k and v of a head

// One head: its buffers. Windows wait in memory between the tokens of a segment only.
struct Head {
  alignas(64) f32x16 window[kVectors][kMaxTaps];
  alignas(64) char qkv[3 * kMaxDim * sizeof(float)];
  alignas(64) char o[kMaxDim * sizeof(float)];
  int64_t head;

  __attribute__((always_inline)) void convolve(const Args *args, const Segment &segment, int64_t row) {
    const short_conv::Config &c = k31_config.conv;
    const int past = c.taps - 1;
    const int64_t dim = k31_config.kda.head_dim, heads = k31_config.kda.heads;
    const bool first = row == segment.row_begin, last = row + 1 == (int64_t)segment.row_begin + segment.length;
    for (int part = 0, i = 0; part < 3; ++part)
      for (int64_t d = 0; d < dim; d += kLanes, ++i) {
        const int64_t channel = (part * heads + head) * dim + d;
        f32x16 taps[kMaxTaps], inputs[kMaxTaps];
        Channels::load_taps(args->w, channel, kLanes, taps);
        for (int j = 0; j < past; ++j)
          inputs[j] = first ? Channels::load_input(args->window, segment, j, channel, kLanes) : window[i][j];
        f32x16 now = load16(args->x, c.x_type, row * c.ld_x + channel);
        store16(qkv, c.out_type, part * dim + d, Channels::step(taps, inputs, now));
        for (int j = 0; j < past; ++j)
          if (last)
            Channels::store_input(args->window, segment, j, channel, kLanes, inputs[j]);
          else
            window[i][j] = inputs[j];
      }
  }
};

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const int64_t segments = args->batch.counts[1], dim = c.kda.head_dim;
  Head x;
  x.head = -1; // none yet
  row::Args row_args = row::args_of(*args, c, args->batch.counts);
  kda::Args kda_args{nullptr, nullptr, nullptr, args->g, args->beta, args->state, args->batch, nullptr};
  Range units = share(c.kda.heads * segments, task, tasks);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const Segment &segment = args->batch.segments[unit % segments];
    if (const int64_t head = unit / segments; head != x.head) {
      x.head = head;
      // Rows of the buffers have no distance, and column head * dim is their first.
      const int64_t first = head * dim;
      const auto part = [&](int i) { return element(x.qkv, c.kda.qkv_type, i * dim - first); };
      kda_args.q = part(0), kda_args.k = part(1), kda_args.v = part(2);
      kda_args.out = row_args.tail[c.at] = element(x.o, c.kda.out_type, -first);
    }
    kda::Work w = Tokens::begin(&kda_args, segment, x.head);
    for (int64_t row = segment.row_begin; row < (int64_t)segment.row_begin + segment.length; ++row, w.from = w.to) {
      x.convolve(args, segment, row);
      Tokens::token(w, row);
      row::Groups<Row>::group(&row_args, row, x.head * dim);
    }
  }
}
