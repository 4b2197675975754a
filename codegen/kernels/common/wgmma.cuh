// Products of a warp group (four warps, 64 rows) with both operands in shared memory, asynchronous. sm_90a.
//
// Lane l of warp w of the group holds rows 16 w + l / 4 and 8 below of the sums, columns as in C of m16n8k16: d[j] are those of
// columns 8 j .. 8 j + 7.
#pragma once
#include "codegen/kernels/common/ptx.cuh"

namespace k31::kernels {

// Rows of 128 bytes in the 128-byte swizzle, eight rows (1024 bytes) a block, blocks one after the other. A step of 16 columns
// adds 32 bytes to the address.
K31_DEVICE uint64_t matrix_descriptor(const void *tile) {
  const uint64_t address = (shared_address(tile) & 0x3ffff) >> 4, block = 1024 >> 4, swizzle_128 = 1;
  return address | (uint64_t)1 << 16 | block << 32 | swizzle_128 << 62;
}

// Before the first product of a group of them, and after the sums were touched by other instructions.
K31_DEVICE void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
K31_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most N of the newest groups are under way.
template <int N> K31_DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

// d += a b for 64 rows of A and as many rows of W (columns of d) as d has; clang-format off: the lists of registers are tables.
// clang-format off
#define K31_SUMS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
K31_DEVICE void wgmma_bf16(float (&d)[16][4], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, add, 1, 1, 0, 0;\n}\n"
      :
        K31_SUMS(0), K31_SUMS(1), K31_SUMS(2), K31_SUMS(3),
        K31_SUMS(4), K31_SUMS(5), K31_SUMS(6), K31_SUMS(7),
        K31_SUMS(8), K31_SUMS(9), K31_SUMS(10), K31_SUMS(11),
        K31_SUMS(12), K31_SUMS(13), K31_SUMS(14), K31_SUMS(15)
      : "l"(a), "l"(b), "r"(1));
}
K31_DEVICE void wgmma_bf16(float (&d)[32][4], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, add, 1, 1, 0, 0;\n}\n"
      :
        K31_SUMS(0), K31_SUMS(1), K31_SUMS(2), K31_SUMS(3),
        K31_SUMS(4), K31_SUMS(5), K31_SUMS(6), K31_SUMS(7),
        K31_SUMS(8), K31_SUMS(9), K31_SUMS(10), K31_SUMS(11),
        K31_SUMS(12), K31_SUMS(13), K31_SUMS(14), K31_SUMS(15),
        K31_SUMS(16), K31_SUMS(17), K31_SUMS(18), K31_SUMS(19),
        K31_SUMS(20), K31_SUMS(21), K31_SUMS(22), K31_SUMS(23),
        K31_SUMS(24), K31_SUMS(25), K31_SUMS(26), K31_SUMS(27),
        K31_SUMS(28), K31_SUMS(29), K31_SUMS(30), K31_SUMS(31)
      : "l"(a), "l"(b), "r"(1));
}
#undef K31_SUMS
// clang-format on

} // namespace k31::kernels
