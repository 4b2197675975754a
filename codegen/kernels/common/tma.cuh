// Copies of tiles by the copy engine (TMA) into shared memory.
#pragma once
#include "codegen/kernels/common/mbarrier.cuh"
#include "codegen/kernels/common/tensor_map.h"

namespace k31::kernels {

// The box at (column, row) to `to` (aligned to 1024 bytes); its bytes count at `b`.
K31_DEVICE void copy_box(void *to, const EncodedMap *map, int32_t column, int32_t row, Barrier *b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   shared_address(to)),
               "l"((uint64_t)map), "r"(shared_address(b)), "r"(column), "r"(row)
               : "memory");
}

} // namespace k31::kernels
