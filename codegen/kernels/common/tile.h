// What the launch choices of CUDA kernels share. Plain C++: codegen evaluates `grid` and `workspace` on the host.
//
// Beside each `<op>.cuh` a header `<op>.tile.h` holds
//   Tile          what is chosen for a launch and is no part of the op's meaning: a structural struct of int32 fields with
//                 `threads()` (threads of a block) and, with a Config, `smem(Config)` (bytes of dynamic shared memory);
//   choose        a good Tile for a Config whose `rows` is the capacity;
//   grid          blocks of the launch, from the capacity in Config: kernels exit early by the live counts in device memory;
//   workspace     bytes of the launch's last argument, 0 when there is none.
// Device code never reads `Config::rows`: one image serves buckets that differ in their capacity only.
#pragma once
#include "codegen/kernels/common/grid.h"

namespace k31::kernels {

constexpr int32_t kMultiprocessors = 132; // of an H100 or H200 SXM: how many blocks fill the device, never correctness
constexpr int32_t kMaxGridY = 65535;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int32_t least(int64_t a, int64_t b) { return (int32_t)(a < b ? a : b); }
constexpr int32_t most(int64_t a, int64_t b) { return (int32_t)(a > b ? a : b); }
constexpr int32_t bytes_of_type(DType t) { return t == DType::bf16 ? 2 : t == DType::f32 || t == DType::i32 ? 4 : 1; }

// Blocks that a multiprocessor has to hold at once, so that the compiler keeps to their share of registers.
template <class Tile> constexpr int32_t blocks_at_once(const Tile &t) {
  if constexpr (requires { t.blocks_at_once(); })
    return t.blocks_at_once();
  else
    return 1;
}

} // namespace k31::kernels
