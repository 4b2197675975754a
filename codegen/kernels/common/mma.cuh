// Matrix products of a warp on bf16 with fp32 sums: fragments from shared memory (ldmatrix) and the product m16n8k16.
//
// Fragments of lane l, g = l / 4, t = l % 4 (a register holds two neighbouring values along k):
//   A [16, 16]: a0 = (g, 2t), a1 = (g + 8, 2t), a2 = (g, 2t + 8), a3 = (g + 8, 2t + 8)
//   B [16, 8]:  b0 = (2t, g), b1 = (2t + 8, g)           as B^T rows: n = g, k along the row
//   C [16, 8]:  c0, c1 = (g, 2t), (g, 2t + 1); c2, c3 = (g + 8, 2t), (g + 8, 2t + 1)
// The order of k is free as long as A and B agree.
#pragma once
#include "codegen/kernels/common/ptx.cuh"

namespace k31::kernels {

// c += a b
K31_DEVICE void mma_bf16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of 16-bit values; lane l gives the address of row l % 8 of matrix l / 8 (16 bytes each). Lane l gets values
// 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of each matrix; transposed: of column l / 4.
K31_DEVICE void load_matrices(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
K31_DEVICE void load_matrices_transposed(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// The way back: two or four 8 x 8 matrices in the layout of products, stored transposed. Lane l gives the address of 16 bytes:
// column l % 8 of matrix l / 8.
K31_DEVICE void store_matrices_transposed(void *column, uint32_t a, uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(column)), "r"(a), "r"(b)
               : "memory");
}
K31_DEVICE void store_matrices_transposed(void *column, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(column)), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

} // namespace k31::kernels
