// RUN: k31-opt %s -fuse-ops -split-input-file | FileCheck %s

// The sum is read later too: it becomes a second result of the norm.
// CHECK-LABEL: func.func @add_norm
// CHECK: %[[R:.*]]:2 = nn.row ["add", "rms_norm"] live %{{.*}}(%arg0, %arg1, %arg2)
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[G:.*]]: f32):
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: %[[Q:.*]] = arith.mulf %[[S]], %[[S]]
// CHECK: nn.sum %[[Q]]
// CHECK: nn.yield %{{.*}}, %[[S]] : f32, f32
// CHECK: -> (tensor<4x32xbf16>, tensor<4x32xbf16>)
// CHECK-NOT: nn.map
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @add_norm(%a: tensor<4x32xbf16>, %b: tensor<4x32xbf16>, %g: tensor<32xbf16>, %live: tensor<1xi32>)
    -> (tensor<4x32xbf16>, tensor<4x32xbf16>) {
  %p = nn.map ["add"] live %live (%a, %b) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
  %h = nn.row ["rms_norm"] live %live (%p, %g) {
  ^bb0(%x: f32, %gain: f32):
    %q = arith.mulf %x, %x : f32
    %s = nn.sum %q : f32
    %i = math.rsqrt %s : f32
    %n = arith.mulf %x, %i : f32
    %o = arith.mulf %n, %gain : f32
    nn.yield %o : f32
  } : (tensor<1xi32>, tensor<4x32xbf16>, tensor<32xbf16>) -> tensor<4x32xbf16>
  return %h, %p : tensor<4x32xbf16>, tensor<4x32xbf16>
}

// -----

// A row in four groups repeats [8] in each group, a map would read it as one value for four columns: they stay apart.
// CHECK-LABEL: func.func @other_broadcast
// CHECK: nn.map ["scale"]
// CHECK: nn.row ["norm"]
func.func @other_broadcast(%a: tensor<4x32xbf16>, %v: tensor<8xf32>, %live: tensor<1xi32>) -> tensor<4x32xbf16> {
  %p = nn.map ["scale"] live %live (%a, %v) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.mulf %x, %y : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<4x32xbf16>, tensor<8xf32>) -> tensor<4x32xbf16>
  %h = nn.row ["norm"] live %live groups 4 (%p) {
  ^bb0(%x: f32):
    %s = nn.sum %x : f32
    %n = arith.mulf %x, %s : f32
    nn.yield %n : f32
  } : (tensor<1xi32>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
  return %h : tensor<4x32xbf16>
}

// -----

// The product lies between the sum and the norm that also reads it: no order of one op would do.
// CHECK-LABEL: func.func @between
// CHECK: nn.map ["neg"]
// CHECK: nn.head_linear
// CHECK: nn.map ["add"]
func.func @between(%a: tensor<4x32xf32>, %w: tensor<32x32xf32>, %live: tensor<1xi32>) -> tensor<4x32xf32> {
  %p = nn.map ["neg"] live %live (%a) {
  ^bb0(%x: f32):
    %s = arith.negf %x : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  %y = nn.head_linear %p, %w live %live heads 1 rows [0, 32] : (tensor<4x32xf32>, tensor<32x32xf32>, tensor<1xi32>) -> tensor<4x32xf32>
  %h = nn.map ["add"] live %live (%p, %y) {
  ^bb0(%x: f32, %z: f32):
    %s = arith.addf %x, %z : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  return %h : tensor<4x32xf32>
}
