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

// A product of more rows than a warp takes reads both matrices by tensor maps, which stand behind the pointers.
// CHECK-LABEL: func.func @mapped
// CHECK: maps = [{arg = 0 : i64, box_columns = 64 : i64, box_rows = 128 : i64, columns = 64 : i64, dtype = "bf16", row_bytes = 128 : i64, rows = 300 : i64}, {arg = 1 : i64, box_columns = 64 : i64, box_rows = {{[0-9]+}} : i64, columns = 64 : i64, dtype = "bf16", row_bytes = 128 : i64, rows = 4096 : i64}]
// CHECK-SAME: maps_at = {{[1-9][0-9]+}} : i64
func.func @mapped(%x: tensor<300x64xbf16>, %w: tensor<4096x64xbf16>, %live: tensor<1xi32>) -> tensor<300x4096xbf16> {
  %y = nn.linear %x, %w live %live : (tensor<300x64xbf16>, tensor<4096x64xbf16>, tensor<1xi32>) -> tensor<300x4096xbf16>
  return %y : tensor<300x4096xbf16>
}
