// CUDA kernel of attn.short_conv: a thread walks a run of rows for 8 channels, its last taps - 1 inputs in registers.
//
// Runs cut the live rows, not the segments, so that one long segment fills the device. The thread that meets a segment's first
// row also takes the following taps - 2 rows, which still read the window, and writes the new window from x: one thread
// reads and writes a window, so slot_in may be slot_out. No segment may write a slot that another one of the entry reads.
// Rows are loaded four at a time before the first use: the kernel is bound by memory.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/short_conv.tile.h"
#include "codegen/kernels/common/math.cuh"

namespace k31::kernels::short_conv {

// N channels from `channel` on.
template <Config c, Tile t, class Region, int N> struct Run {
  static constexpr int kPast = c.taps - 1;
  static constexpr int kAhead = 4; // rows loaded before the first is used

  const Args &args;
  int64_t channel;
  float taps[c.taps][N];
  float window[kPast > 0 ? kPast : 1][N]; // oldest first

  K31_DEVICE Run(const Args &args, int64_t channel) : args(args), channel(channel) {} // the arrays stay in registers
  K31_DEVICE void load_taps() {                                                       // N channels' taps stand together
#pragma unroll
    for (int first = 0; first < N * c.taps; first += N) {
      float v[N];
      load_values<c.w_type>(args.w, channel * c.taps + first, v);
#pragma unroll
      for (int i = 0; i < N; ++i)
        taps[(first + i) % c.taps][(first + i) / c.taps] = v[i];
    }
  }
  K31_DEVICE void load_x(int64_t row, float (&v)[N]) const { load_values<c.x_type>(args.x, row * c.ld_x + channel, v); }

  // An input of the segment by its distance from the first row; before that a value of the window it began with.
  K31_DEVICE void load_input(const Segment &s, int64_t offset, float (&v)[N]) const {
    if (offset >= 0) {
      load_x(s.row_begin + offset, v);
    } else if (s.slot_in >= 0) {
      load_values<c.window_type>(args.window, ((int64_t)s.slot_in * kPast + kPast + offset) * c.channels + channel, v);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        v[i] = 0;
    }
  }
  // The inputs before `row`.
  K31_DEVICE void load_window(const Segment &s, int64_t row) {
#pragma unroll
    for (int j = 0; j < kPast; ++j)
      load_input(s, row - kPast + j - s.row_begin, window[j]);
  }
  // The segment's last inputs go to slot_out, oldest first: what is written is older than all that is still read.
  K31_DEVICE void store_window(const Segment &s) const {
#pragma unroll
    for (int j = 0; j < kPast; ++j) {
      float v[N];
      load_input(s, (int64_t)s.length - kPast + j, v);
      store_values<c.window_type>(args.window, ((int64_t)s.slot_out * kPast + j) * c.channels + channel, v);
    }
  }
  K31_DEVICE void step(int64_t row, const float (&now)[N]) {
    float y[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kPast; ++j)
        sum += taps[j][i] * window[j][i];
      sum += taps[kPast][i] * now[i];
      if constexpr (c.epilogue != 0)
        Region::phase0(&sum, &y[i]);
      else
        y[i] = sum;
    }
    store_values<c.out_type>(args.out, row * c.ld_out + channel, y);
#pragma unroll
    for (int j = 0; j < kPast; ++j)
#pragma unroll
      for (int i = 0; i < N; ++i)
        window[j][i] = j + 1 < kPast ? window[j + 1 < kPast ? j + 1 : j][i] : now[i];
  }
  // Rows [row, end) of one segment; the window is that of `row`.
  K31_DEVICE void walk(int64_t row, int64_t end) {
    for (; row + kAhead <= end; row += kAhead) {
      float x[kAhead][N];
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
        load_x(row + a, x[a]);
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
        step(row + a, x[a]);
    }
    for (; row < end; ++row) {
      float x[N];
      load_x(row, x);
      step(row, x);
    }
  }
};

template <Config c, Tile t, class Region, int N> K31_DEVICE void convolve(const Args &args) {
  constexpr int32_t vectors = c.channels / N;
  constexpr int kPast = c.taps - 1;
  const Batch &batch = args.batch;
  const int64_t live = batch.counts[0], threads = (int64_t)gridDim.x * t.threads();
  int64_t rows = ceil_div(live * vectors, threads); // of a run: few rows still use all threads
  rows = rows < 1 ? 1 : rows > t.rows ? t.rows : rows;
  const int64_t units = ceil_div(live, rows) * vectors;
  for (int64_t u = (int64_t)blockIdx.x * t.threads() + threadIdx.x; u < units; u += threads) {
    Run<c, t, Region, N> run(args, u % vectors * N);
    run.load_taps();
    const int64_t begin = u / vectors * rows, end = begin + rows < live ? begin + rows : live;
    for (int64_t row = begin; row < end;) {
      const Segment s = batch.segments[batch.row_segment[row]];
      const int64_t stop = (int64_t)s.row_begin + s.length, early = s.row_begin + kPast < stop ? s.row_begin + kPast : stop;
      int64_t to = stop < end ? stop : end;
      if (s.row_begin >= begin) {
        to = to < early ? early : to; // these rows read the window too
      } else if (row < early) {
        row = early < to ? early : to; // the others are taken by the thread that met the first row
        if (row == to)
          continue;
      }
      run.load_window(s, row);
      if (row == s.row_begin)
        run.store_window(s);
      run.walk(row, to);
      row = to;
    }
  }
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (c.channels % 8 == 0 && c.ld_x % 8 == 0 && c.ld_out % 8 == 0)
    if (aligned16(args.x) && aligned16(args.w) && aligned16(args.window) && aligned16(args.out))
      return convolve<c, t, Region, 8>(args);
  convolve<c, t, Region, 1>(args);
}

} // namespace k31::kernels::short_conv
