// Products of many rows in AMX tiles: bf16 by bf16, fp32 sums.
//
// A tile holds 16 rows of 64 bytes. Rows of W have to become [k / 2][n][2]: 16 of them are transposed in pairs of values, once
// for all rows of x. A panel is 128 rows of W. It goes by in chunks of 512 columns, which stay in the second-level cache with the
// sums of the panel; 32 rows of x at a time are copied tile by tile into the first-level cache, because rows in place lie a
// multiple of 4 KiB apart and would push each other out. x is read once a panel, W once in all.
#pragma once
#include "codegen/kernels/common/host.h"

namespace k31::kernels {

constexpr int kPanel = 128;      // rows of W
constexpr int kPanelRows = 512;  // rows of x at most
constexpr int kPanelChunk = 512; // columns of one chunk
constexpr int kPanelBlock = 32;  // rows of x, and of W, of one block of four tiles

// What a thread needs for a panel: 416 KiB of its stack. A tile is [16 rows][16 pairs], or [16 pairs][16 rows] of W.
typedef uint32_t PanelTile[kLanes * kLanes];
struct Panel {
  alignas(64) float sums[kPanelRows * kPanel];
  alignas(64) PanelTile w[kPanel / kLanes][kPanelChunk / 32];
  alignas(64) PanelTile x[kPanelBlock / kLanes][kPanelChunk / 32];
};

#if defined(__AMX_BF16__)

// Tiles 0 to 3: sums of 2 x 2 blocks of 16; 4 and 5: rows of x; 6 and 7: rows of W. `first` and `second` are rows of x.
K31_INLINE void configure_tiles(int first, int second) {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
  } tiles;
  const int rows[8] = {first, first, second, second, first, second, kLanes, kLanes};
  for (int i = 0; i < 8; ++i)
    tiles.bytes[i] = 64, tiles.rows[i] = (uint8_t)(rows[i] ? rows[i] : 1);
  __builtin_ia32_tile_loadconfig(&tiles);
}

// sums [rows of x, 32] += x W^T over one chunk; `both`: there are more than 16 rows of x.
K31_INLINE void multiply_block(const PanelTile *const x[2], const PanelTile *const w[2], int tiles, bool both, bool start,
                               float *sums) {
  constexpr int64_t kStride = kPanel * sizeof(float);
  float *below = sums + kLanes * kPanel;
  if (start) {
    __builtin_ia32_tilezero(0), __builtin_ia32_tilezero(1);
    __builtin_ia32_tilezero(2), __builtin_ia32_tilezero(3);
  } else {
    __builtin_ia32_tileloadd64(0, sums, kStride), __builtin_ia32_tileloadd64(1, sums + kLanes, kStride);
    if (both)
      __builtin_ia32_tileloadd64(2, below, kStride), __builtin_ia32_tileloadd64(3, below + kLanes, kStride);
  }
  if (both)
    for (int k = 0; k < tiles; ++k) {
      __builtin_ia32_tileloadd64(6, w[0][k], 64);
      __builtin_ia32_tileloadd64(4, x[0][k], 64);
      __builtin_ia32_tdpbf16ps(0, 4, 6);
      __builtin_ia32_tileloadd64(7, w[1][k], 64);
      __builtin_ia32_tdpbf16ps(1, 4, 7);
      __builtin_ia32_tileloadd64(5, x[1][k], 64);
      __builtin_ia32_tdpbf16ps(2, 5, 6);
      __builtin_ia32_tdpbf16ps(3, 5, 7);
    }
  else
    for (int k = 0; k < tiles; ++k) {
      __builtin_ia32_tileloadd64(6, w[0][k], 64);
      __builtin_ia32_tileloadd64(4, x[0][k], 64);
      __builtin_ia32_tileloadd64(7, w[1][k], 64);
      __builtin_ia32_tdpbf16ps(0, 4, 6);
      __builtin_ia32_tdpbf16ps(1, 4, 7);
    }
  __builtin_ia32_tilestored64(0, sums, kStride), __builtin_ia32_tilestored64(1, sums + kLanes, kStride);
  if (both)
    __builtin_ia32_tilestored64(2, below, kStride), __builtin_ia32_tilestored64(3, below + kLanes, kStride);
}

// p.sums [rows, 128] = x W^T for rows 0 .. width - 1 of W; pairs(n, k) gives 16 pairs of columns k .. k + 31 of row n as lanes.
// `rows` is 1 to kPanelRows, K a multiple of 32, width one of 16.
template <class Pairs>
K31_INLINE void multiply_panel(const uint16_t *x, int64_t ld_x, int rows, int64_t k, int width, Panel &p, Pairs pairs) {
  for (int64_t chunk = 0; chunk < k; chunk += kPanelChunk) {
    const int tiles = (k - chunk < kPanelChunk ? (int)(k - chunk) : kPanelChunk) / 32;
    for (int n = 0; n < width; n += kLanes)
      for (int t = 0; t < tiles; ++t) {
        f32x16 v[kLanes];
        K31_UNROLL for (int i = 0; i < kLanes; ++i) v[i] = (f32x16)pairs(n + i, chunk + 32 * t);
        transpose16(v);
        K31_UNROLL for (int i = 0; i < kLanes; ++i) memcpy(p.w[n / kLanes][t] + kLanes * i, &v[i], sizeof v[i]);
      }
    for (int row = 0; row < rows; row += kPanelBlock) {
      const int left = rows - row < kPanelBlock ? rows - row : kPanelBlock;
      if (row == 0 || left < kPanelBlock)
        configure_tiles(left < kLanes ? left : kLanes, left < kLanes ? 0 : left - kLanes);
      for (int r = 0; r < left; ++r)
        for (int t = 0; t < tiles; ++t)
          memcpy(p.x[r / kLanes][t] + r % kLanes * kLanes, x + (row + r) * ld_x + chunk + 32 * t, 64);
      const PanelTile *xs[2] = {p.x[0], p.x[1]};
      for (int n = 0; n < width; n += 2 * kLanes) { // of an odd number of tiles the last one meets rests of W: not stored
        const PanelTile *ws[2] = {p.w[n / kLanes], p.w[n / kLanes + 1]};
        multiply_block(xs, ws, tiles, left > kLanes, chunk == 0, p.sums + row * kPanel + n);
      }
    }
  }
  __builtin_ia32_tilerelease();
}

#else // a build for tests of the other paths

template <class Pairs> K31_INLINE void multiply_panel(const uint16_t *, int64_t, int, int64_t, int, Panel &, Pairs) {}

#endif

} // namespace k31::kernels
