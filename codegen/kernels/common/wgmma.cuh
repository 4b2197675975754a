// Matrix products of a warp group (sm_90a): operands in shared memory, fp32 sums in registers. Four warps take 64 rows; the sums
// have the layout of m16n8k16 in each warp: 16 rows a warp, eight columns an entry of the first index.
#pragma once
#include "codegen/kernels/common/ptx.cuh"

namespace k31::kernels {

// Rows of 128 bytes in the 128-byte swizzle, eight rows (1024 bytes) a block, blocks one after the other. A step of 16 columns
// adds 32 bytes to the address; read transposed (rows along k), a step of 16 rows adds 2048 bytes. In units of 16 bytes.
K31_DEVICE uint64_t matrix_descriptor(const void *tile) {
  const uint64_t address = (shared_address(tile) & 0x3ffff) >> 4, block = 1024 >> 4, swizzle_128 = 1;
  return address | (uint64_t)1 << 16 | block << 32 | swizzle_128 << 62;
}

// Before the first product of a group of them, and after the sums were touched by other instructions.
K31_DEVICE void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
K31_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most N of the newest groups are under way.
template <int N> K31_DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

// wgmma_bf16<transposed>(d, a, b, add): d (+)= a b for 64 rows of A and as many rows of W (columns of d) as d has. transposed: A
// is read with k along its rows. `a` may be registers instead, rows as in m16n8k16 of each warp, that stay as they are until the
// product has been waited for. clang-format off: the lists of registers are tables.
// clang-format off
#define K31_NAMES_8 "%0, %1, %2, %3"
#define K31_NAMES_16 \
  K31_NAMES_8 ", " \
  "%4, %5, %6, %7"
#define K31_NAMES_24 \
  K31_NAMES_16 ", " \
  "%8, %9, %10, %11"
#define K31_NAMES_32 \
  K31_NAMES_24 ", " \
  "%12, %13, %14, %15"
#define K31_NAMES_48 \
  K31_NAMES_32 ", " \
  "%16, %17, %18, %19, %20, %21, %22, %23"
#define K31_NAMES_64 \
  K31_NAMES_48 ", " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define K31_NAMES_80 \
  K31_NAMES_64 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39"
#define K31_NAMES_96 \
  K31_NAMES_80 ", " \
  "%40, %41, %42, %43, %44, %45, %46, %47"
#define K31_NAMES_128 \
  K31_NAMES_96 ", " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define K31_NAMES_192 \
  K31_NAMES_128 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define K31_NAMES_256 \
  K31_NAMES_192 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define K31_SUM(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define K31_SUMS_8 K31_SUM(0)
#define K31_SUMS_16 \
  K31_SUMS_8, \
  K31_SUM(1)
#define K31_SUMS_24 \
  K31_SUMS_16, \
  K31_SUM(2)
#define K31_SUMS_32 \
  K31_SUMS_24, \
  K31_SUM(3)
#define K31_SUMS_48 \
  K31_SUMS_32, \
  K31_SUM(4), K31_SUM(5)
#define K31_SUMS_64 \
  K31_SUMS_48, \
  K31_SUM(6), K31_SUM(7)
#define K31_SUMS_80 \
  K31_SUMS_64, \
  K31_SUM(8), K31_SUM(9)
#define K31_SUMS_96 \
  K31_SUMS_80, \
  K31_SUM(10), K31_SUM(11)
#define K31_SUMS_128 \
  K31_SUMS_96, \
  K31_SUM(12), K31_SUM(13), K31_SUM(14), K31_SUM(15)
#define K31_SUMS_192 \
  K31_SUMS_128, \
  K31_SUM(16), K31_SUM(17), K31_SUM(18), K31_SUM(19), K31_SUM(20), K31_SUM(21), K31_SUM(22), K31_SUM(23)
#define K31_SUMS_256 \
  K31_SUMS_192, \
  K31_SUM(24), K31_SUM(25), K31_SUM(26), K31_SUM(27), K31_SUM(28), K31_SUM(29), K31_SUM(30), K31_SUM(31)
#define K31_WGMMA(columns, a_at, b_at, add_at, transposed_at)                                        \
  template <int transposed = 0>                                                                      \
  K31_DEVICE void wgmma_bf16(float (&d)[columns / 8][4], uint64_t a, uint64_t b, int add = 1) {      \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #add_at ", 0;\n"                           \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.bf16.bf16 {" K31_NAMES_##columns \
                 "}, %" #a_at ", %" #b_at ", add, 1, 1, %" #transposed_at ", 0;\n}\n"                 \
                 : K31_SUMS_##columns                                                                \
                 : "l"(a), "l"(b), "r"(add), "n"(transposed));                                       \
  }
K31_WGMMA(8, 4, 5, 6, 7)
K31_WGMMA(16, 8, 9, 10, 11)
K31_WGMMA(24, 12, 13, 14, 15)
K31_WGMMA(32, 16, 17, 18, 19)
K31_WGMMA(48, 24, 25, 26, 27)
K31_WGMMA(64, 32, 33, 34, 35)
K31_WGMMA(96, 48, 49, 50, 51)
K31_WGMMA(128, 64, 65, 66, 67)
K31_WGMMA(192, 96, 97, 98, 99)
K31_WGMMA(256, 128, 129, 130, 131)
#define K31_WGMMA_REGISTERS(columns, a0, a1, a2, a3, b_at, add_at)                                   \
  K31_DEVICE void wgmma_bf16(float (&d)[columns / 8][4], const uint32_t (&a)[4], uint64_t b, int add) { \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #add_at ", 0;\n"                           \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.bf16.bf16 {" K31_NAMES_##columns \
                 "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_at ", add, 1, 1, 0;\n}\n"         \
                 : K31_SUMS_##columns                                                                \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                    \
  }
K31_WGMMA_REGISTERS(16, 8, 9, 10, 11, 12, 13)
K31_WGMMA_REGISTERS(32, 16, 17, 18, 19, 20, 21)
K31_WGMMA_REGISTERS(48, 24, 25, 26, 27, 28, 29)
K31_WGMMA_REGISTERS(64, 32, 33, 34, 35, 36, 37)
K31_WGMMA_REGISTERS(80, 40, 41, 42, 43, 44, 45)
K31_WGMMA_REGISTERS(96, 48, 49, 50, 51, 52, 53)
#undef K31_WGMMA_REGISTERS
#undef K31_WGMMA
#undef K31_SUM
#undef K31_NAMES_8
#undef K31_SUMS_8
#undef K31_NAMES_16
#undef K31_SUMS_16
#undef K31_NAMES_24
#undef K31_SUMS_24
#undef K31_NAMES_32
#undef K31_SUMS_32
#undef K31_NAMES_48
#undef K31_SUMS_48
#undef K31_NAMES_64
#undef K31_SUMS_64
#undef K31_NAMES_80
#undef K31_SUMS_80
#undef K31_NAMES_96
#undef K31_SUMS_96
#undef K31_NAMES_128
#undef K31_SUMS_128
#undef K31_NAMES_192
#undef K31_SUMS_192
#undef K31_NAMES_256
#undef K31_SUMS_256
// clang-format on

// Registers of each thread of a warp group from here on: the whole block holds 64 K of them.
template <int N> K31_DEVICE void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> K31_DEVICE void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

} // namespace k31::kernels
