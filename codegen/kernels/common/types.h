// Types that every kernel contract shares: element types, the batch descriptor and the visitor that names Config fields.
//
// A kernel header holds two structs. `Config` is what the compiler fixes: every field is four bytes wide (int32_t, float
// or DType, or an array of int32_t), so that a specialised copy is a plain constant. Its `rows`, the capacity of a bucket,
// decides the grid on CUDA; host kernels go by the live rows, and there it is 0 unless it drops tall register tiles.
// `host_limits`, where a Config has it, visits (name, value, most, multiple) of what the host kernel cannot exceed. `Args` is
// what Bind fixes: only eight-byte pointers, in the order of the op's operands, then its results, then its workspace.
#pragma once
#if defined(__CUDACC_RTC__) // NVRTC has no standard headers
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#else
#include <cstdint>
#endif

namespace k31::kernels {

// f8, i8: codes with scales, in caches only (fp8.h).
enum class DType : int32_t { f32 = 0, bf16 = 1, u8 = 2, i32 = 3, f8 = 4, i8 = 5 };

// One run of consecutive tokens of one sequence inside an entry. All fields are filled by the engine at Run.
struct Segment {
  int32_t row_begin; // first row of the entry that belongs to the segment
  int32_t length;    // rows, at least 1
  int32_t start;     // position in the sequence of the first row
  int32_t slot_in;   // state slot read before the first row; -1: the state is zero
  int32_t slot_out;  // state slot written after the last row
  int32_t reserved;
};

// Expansion of an `!attn.batch` operand: four consecutive pointers of an Args struct.
struct Batch {
  const int32_t *counts;      // [4]: live rows, live segments, live logit rows, reserved
  const Segment *segments;    // [S]
  const int32_t *row_segment; // [T]: segment of a row; rows past the live ones hold -1
  const int32_t *block_table; // [S, blocks]: physical block of each 256 positions of a segment's sequence
};

constexpr int32_t kBlockTokens = 256; // positions of one cache block

} // namespace k31::kernels
