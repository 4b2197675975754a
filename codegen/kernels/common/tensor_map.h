// Tensor maps: how the copy engine (TMA) finds tiles of a matrix. Plain C++: a kernel's `<op>.tile.h` describes its maps by
// `tensor_maps(Config, Tile)`, the plan carries the description with the launch, the runtime encodes it when the addresses are
// known and lays the result behind the pointers of the argument block.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels {

// A matrix of `rows` rows, `row_bytes` apart, of which boxes are copied into shared memory in the 128-byte swizzle; what a box
// has outside of the matrix becomes zeros.
struct TensorMap {
  int32_t argument = 0; // place of the matrix's pointer in the argument block
  DType type = DType::bf16;
  int64_t columns = 0, rows = 0, row_bytes = 0;
  int32_t box_columns = 0, box_rows = 0; // 128 bytes of columns; at most 256 rows
};

constexpr int32_t kMaxTensorMaps = 2;
struct TensorMaps {
  int32_t count = 0;
  TensorMap map[kMaxTensorMaps] = {};
};

// What the copy engine reads, CUtensorMap: 128 bytes. All zero where the matrix is not aligned to 16 bytes.
struct alignas(64) EncodedMap {
  uint64_t words[16];
};

// The argument block of a kernel with tensor maps.
template <class Args> struct Mapped {
  Args args;
  EncodedMap maps[kMaxTensorMaps];
};

} // namespace k31::kernels
