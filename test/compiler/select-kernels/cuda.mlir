// RUN: k31-opt %s -select-kernels=target=sm_90a | FileCheck %s

// On CUDA the Config holds the capacity of the bucket, and the launch is static: grid, block and shared memory instead of tasks.
// Needs no CUDA: the headers of the kernels give the numbers.
// CHECK-LABEL: func.func @linear
// CHECK: nn.linear
// CHECK-SAME: k31.kernel = {block = {{[0-9]+}} : i64, config = {k = 64 : i64, ld_x = 64 : i64, n = 128 : i64, out_ld = array<i32: 128>, out_type = array<i32: 1>, rows = 24 : i64}
// CHECK-SAME: grid = array<i32: {{[1-9][0-9]*, [1-9][0-9]*, [1-9][0-9]*}}>
// CHECK-SAME: name = "nn.linear"
// CHECK-SAME: smem = {{[0-9]+}} : i64
// CHECK-SAME: tile = {
// CHECK-SAME: workspace = {{[0-9]+}} : i64
// CHECK-NOT: tasks
func.func @linear(%x: tensor<24x64xbf16>, %w: tensor<128x64xbf16>, %live: tensor<1xi32>) -> tensor<24x128xbf16> {
  %y = nn.linear %x, %w live %live : (tensor<24x64xbf16>, tensor<128x64xbf16>, tensor<1xi32>) -> tensor<24x128xbf16>
  return %y : tensor<24x128xbf16>
}

// The tile of a product is the cheapest of those that fit, by the estimate that stands beside them.
// CHECK-LABEL: func.func @compared
// CHECK: tile = {ahead = 1 : i64, bm = 64 : i64, bn = 96 : i64, box_x = 64 : i64, form = 3 : i64
// CHECK-SAME: {about = "kernel", candidates = ["mapped 64 x 96", {{.*}}"mapped 64 x 192 by clusters of 2"{{.*}}], choice = "mapped 64 x 96"
// CHECK-SAME: reason = "128 blocks of 256 threads: memory {{[0-9.]+}}, caches {{[0-9.]+}} and products {{[0-9.]+}} us at once, then {{[0-9.]+}} us; 2.0 us to launch"
// A row has it from a rule, with what it has to move.
// CHECK: choice = "64 blocks of 896 threads", reason = "a block a row, as many threads as its elements fill: few rows are a chain of latencies; {{[0-9]+}} bytes and {{[0-9]+}} multiply-adds: {{[0-9.]+}} us at least, and 2.0 us to launch"
// fp32 has one form.
// CHECK: choice = "plain 16 x 32", nanoseconds = array<i64: {{[0-9]+}}>, reason = "{{.*}}; tensor cores take bf16 in rows of whole 16-byte words, 8 columns"
func.func @compared(%x: tensor<64x7168xbf16>, %w: tensor<12288x7168xbf16>, %live: tensor<1xi32>, %s: tensor<64x7168xf32>, %v: tensor<64x7168xf32>)
    -> (tensor<64x12288xbf16>, tensor<64x7168xbf16>, tensor<64x64xf32>) {
  %y = nn.linear %x, %w live %live : (tensor<64x7168xbf16>, tensor<12288x7168xbf16>, tensor<1xi32>) -> tensor<64x12288xbf16>
  %n = nn.row ["norm"] live %live (%x) {
  ^bb0(%a: f32):
    %t = nn.sum %a : f32
    nn.yield %t : f32
  } : (tensor<1xi32>, tensor<64x7168xbf16>) -> tensor<64x7168xbf16>
  %z = nn.linear %s, %v live %live : (tensor<64x7168xf32>, tensor<64x7168xf32>, tensor<1xi32>) -> tensor<64x64xf32>
  return %y, %n, %z : tensor<64x12288xbf16>, tensor<64x7168xbf16>, tensor<64x64xf32>
}

// A product of more rows than a warp takes reads both matrices by tensor maps, which stand behind the pointers.
// CHECK-LABEL: func.func @mapped
// CHECK: maps = [{arg = 0 : i64, box_columns = 64 : i64, box_rows = 128 : i64, columns = 64 : i64, dtype = "bf16", row_bytes = 128 : i64, rows = 300 : i64}, {arg = 1 : i64, box_columns = 64 : i64, box_rows = {{[0-9]+}} : i64, columns = 64 : i64, dtype = "bf16", row_bytes = 128 : i64, rows = 4096 : i64}]
// CHECK-SAME: maps_at = {{[1-9][0-9]+}} : i64
func.func @mapped(%x: tensor<300x64xbf16>, %w: tensor<4096x64xbf16>, %live: tensor<1xi32>) -> tensor<300x4096xbf16> {
  %y = nn.linear %x, %w live %live : (tensor<300x64xbf16>, tensor<4096x64xbf16>, tensor<1xi32>) -> tensor<300x4096xbf16>
  return %y : tensor<300x4096xbf16>
}
