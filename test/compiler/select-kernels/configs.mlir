// RUN: k31-opt %s -select-kernels -split-input-file | FileCheck %s
// RUN: not k31-opt %s -select-kernels=target=tpu -split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: target 'tpu' is unknown; targets are cpu and sm_90a

// A view of columns is read in place: ld_x is the row of its source.
// CHECK-LABEL: func.func @view
// CHECK: nn.linear
// CHECK-SAME: k31.kernel = {config = {k = 32 : i64, ld_x = 96 : i64, n = 16 : i64, out_ld = array<i32: 16>, out_type = array<i32: 1>, rows = 8 : i64, w_type = "f32"}
// CHECK-SAME: name = "nn.linear"
// CHECK-SAME: tasks = 1 : i64, workspace = 0 : i64}
// One task was possible at the cost of this work, two cost more: both stand in the note.
// CHECK-SAME: k31.notes = [{about = "kernel", candidates = ["1 task"], choice = "1 task", nanoseconds = array<i64: {{[0-9]+}}>
// CHECK-SAME: reason = "2048 multiply-adds and {{[0-9]+}} bytes take one core 0.1 us; every doubling of the tasks costs 0.75 us"
func.func @view(%x: tensor<4x96xbf16>, %w: tensor<16x32xf32>, %live: tensor<1xi32>) -> tensor<4x16xbf16> {
  %v = nn.columns %x[32:64] : tensor<4x96xbf16>
  %y = nn.linear %v, %w live %live : (tensor<4x32xbf16>, tensor<16x32xf32>, tensor<1xi32>) -> tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

// -----

// The weight's 11 MB decide the number of tasks.
// CHECK-LABEL: func.func @large
// CHECK: nn.linear
// CHECK-SAME: tasks = 48 : i64
// CHECK-SAME: candidates = ["1 task", "48 tasks"], choice = "48 tasks"
// CHECK-SAME: 5505024 multiply-adds and 11025924 bytes take one core 367.5 us; {{.*}}; at most 48 tasks: independent parts
func.func @large(%x: tensor<1x7168xbf16>, %w: tensor<768x7168xbf16>, %live: tensor<1xi32>) -> tensor<1x768xbf16> {
  %y = nn.linear %x, %w live %live : (tensor<1x7168xbf16>, tensor<768x7168xbf16>, tensor<1xi32>) -> tensor<1x768xbf16>
  return %y : tensor<1x768xbf16>
}

// -----

// Broadcasts: element 0, row_scalar 1, column 2, column_group 3; two sums of depth one, one of depth two.
// CHECK-LABEL: func.func @row
// CHECK: cols = 64 : i64, inputs = 4 : i64, kind = array<i32: 0, 1, 2, 3>, ld = array<i32: 64, 1>, length = array<i32: 0, 0, 64, 8>
// CHECK-SAME: phases = 2 : i64, sums = array<i32: 2, 1>
func.func @row(%a: tensor<4x64xbf16>, %b: tensor<4x1xf32>, %c: tensor<64xf32>, %d: tensor<8xf32>, %live: tensor<1xi32>) -> tensor<4x64xf32> {
  %r = nn.row ["f"] live %live (%a, %b, %c, %d) {
  ^bb0(%x: f32, %y: f32, %z: f32, %w: f32):
    %s = nn.sum %x : f32
    %t = nn.sum %z : f32
    %p = arith.mulf %s, %y : f32
    %u = nn.sum %p : f32
    %q = arith.addf %u, %t : f32
    %o = arith.mulf %q, %w : f32
    nn.yield %o : f32
  } : (tensor<1xi32>, tensor<4x64xbf16>, tensor<4x1xf32>, tensor<64xf32>, tensor<8xf32>) -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}

// -----

// Each task has its own row of scratch: 8 bytes an id.
// CHECK-LABEL: func.func @sample
// CHECK: name = "nn.sample"
// CHECK-SAME: tasks = 2 : i64, workspace = 1048576 : i64
func.func @sample(%l: tensor<2x65536xf32>, %p: tensor<2x24xui8>, %live: tensor<1xi32>) -> tensor<2xi32> {
  %y = nn.sample %l params %p live %live : (tensor<2x65536xf32>, tensor<2x24xui8>, tensor<1xi32>) -> tensor<2xi32>
  return %y : tensor<2xi32>
}

// -----

// Buckets of 16 and 64 rows have the same kernel: no register tile is taller.
// CHECK-LABEL: func.func @buckets
// CHECK-COUNT-2: config = {k = 32 : i64, ld_x = 32 : i64, n = 16 : i64, out_ld = array<i32: 16>, out_type = array<i32: 1>, rows = 8 : i64}
func.func @buckets(%x: tensor<16x32xbf16>, %z: tensor<64x32xbf16>, %w: tensor<16x32xbf16>, %live: tensor<1xi32>)
    -> (tensor<16x16xbf16>, tensor<64x16xbf16>) {
  %y = nn.linear %x, %w live %live : (tensor<16x32xbf16>, tensor<16x32xbf16>, tensor<1xi32>) -> tensor<16x16xbf16>
  %v = nn.linear %z, %w live %live : (tensor<64x32xbf16>, tensor<16x32xbf16>, tensor<1xi32>) -> tensor<64x16xbf16>
  return %y, %v : tensor<16x16xbf16>, tensor<64x16xbf16>
}
