// RUN: k31-opt --canonicalize %s | FileCheck %s

// A view of all columns is its source.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: nn.columns
// CHECK: return %arg0
func.func @whole(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = nn.columns %x[0:64] : tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// A view of a view is one view of the source.
// CHECK-LABEL: func.func @composed
// CHECK-NEXT: %[[V:.+]] = nn.columns %arg0[24 : 28] : tensor<8x64xf32>
// CHECK-NEXT: return %[[V]]
func.func @composed(%x: tensor<8x64xf32>) -> tensor<8x4xf32> {
  %0 = nn.columns %x[16:48] : tensor<8x64xf32>
  %1 = nn.columns %0[4:20] : tensor<8x32xf32>
  %2 = nn.columns %1[4:8] : tensor<8x16xf32>
  return %2 : tensor<8x4xf32>
}

// A view of a vector: its elements.
// CHECK-LABEL: func.func @vector
// CHECK-NEXT: nn.columns %arg0[20 : 24] : tensor<64xf32>
func.func @vector(%x: tensor<64xf32>) -> tensor<4xf32> {
  %0 = nn.columns %x[16:48] : tensor<64xf32>
  %1 = nn.columns %0[4:8] : tensor<32xf32>
  return %1 : tensor<4xf32>
}

// The inner view stays when something else reads it.
// CHECK-LABEL: func.func @shared
// CHECK-DAG: nn.columns %arg0[16 : 48]
// CHECK-DAG: nn.columns %arg0[20 : 36]
func.func @shared(%x: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x16xf32>) {
  %0 = nn.columns %x[16:48] : tensor<8x64xf32>
  %1 = nn.columns %0[4:20] : tensor<8x32xf32>
  return %0, %1 : tensor<8x32xf32>, tensor<8x16xf32>
}

// Constants stay inside the fused region that uses them.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT: nn.map
// CHECK: arith.constant 2.000000e+00 : f32
func.func @constants(%x: tensor<8x64xf32>, %live: tensor<1xi32>) -> tensor<8x64xf32> {
  %0 = nn.map ["twice"] live %live(%x) {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %two = arith.addf %one, %one : f32
    %b = arith.mulf %a, %two : f32
    nn.yield %b : f32
  } : (tensor<1xi32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
