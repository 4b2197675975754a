// Every op of moe: what is printed parses again and prints the same.
// RUN: k31-opt %s | FileCheck %s
// RUN: k31-opt %s | k31-opt | FileCheck %s
// RUN: k31-opt --mlir-print-op-generic %s | k31-opt | FileCheck %s

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<8x64xbf16>, %logits: tensor<8x4xf32>, %bias: tensor<4xf32>, %live: tensor<1xi32>,
                   %w13: tensor<4x64x64xf4E2M1FN>, %s13: tensor<4x64x2xf8E8M0FNU>, %w2: tensor<4x64x32xbf16>) -> tensor<8x64xbf16> {
  // CHECK: [[IDS:%.+]], [[WEIGHTS:%.+]] = moe.route %{{.+}} bias %{{.+}} live %{{.+}} top_k 2 renormalize true scale 2.500000e+00 : tensor<8x4xf32>, tensor<4xf32>, tensor<1xi32>
  %ids, %weights = moe.route %logits bias %bias live %live top_k 2 renormalize true scale 2.5 : tensor<8x4xf32>, tensor<4xf32>, tensor<1xi32>
  // CHECK: [[ROWS:%.+]], [[OFFSETS:%.+]], [[SLOT:%.+]] = moe.permute %{{.+}} by [[IDS]] live %{{.+}} first 0 experts 4 : tensor<8x64xbf16>, tensor<8x2xi32>, tensor<1xi32>
  %rows, %offsets, %slot = moe.permute %x by %ids live %live first 0 experts 4 : tensor<8x64xbf16>, tensor<8x2xi32>, tensor<1xi32>
  // CHECK: moe.permute %{{.+}} by [[IDS]] live [[LIVE:%.+]] at [[LIVE]] first 0 experts 2 : tensor<8x64xbf16>, tensor<8x2xi32>, tensor<1xi32>, tensor<1xi32>
  %some:3 = moe.permute %x by %ids live %live at %live first 0 experts 2 : tensor<8x64xbf16>, tensor<8x2xi32>, tensor<1xi32>, tensor<1xi32>
  // CHECK:      [[U:%.+]] = moe.grouped_linear [[ROWS]], %{{.+}} scale %{{.+}} offsets [[OFFSETS]] pair fused ["glu"] epilogue {
  // CHECK-NEXT: ^bb0(%{{.+}}: f32, %{{.+}}: f32):
  // CHECK:      } : (tensor<16x64xbf16>, tensor<4x64x64xf4E2M1FN>, tensor<4x64x2xf8E8M0FNU>, tensor<5xi32>) -> tensor<16x32xbf16>
  %u = moe.grouped_linear %rows, %w13 scale %s13 offsets %offsets pair fused ["glu"] epilogue {
  ^bb0(%g: f32, %v: f32):
    %p = arith.mulf %g, %v : f32
    nn.yield %p : f32
  } : (tensor<16x64xbf16>, tensor<4x64x64xf4E2M1FN>, tensor<4x64x2xf8E8M0FNU>, tensor<5xi32>) -> tensor<16x32xbf16>
  // CHECK: [[D:%.+]] = moe.grouped_linear [[U]], %{{.+}} offsets [[OFFSETS]] : (tensor<16x32xbf16>, tensor<4x64x32xbf16>, tensor<5xi32>) -> tensor<16x64xbf16>
  %d = moe.grouped_linear %u, %w2 offsets %offsets : (tensor<16x32xbf16>, tensor<4x64x32xbf16>, tensor<5xi32>) -> tensor<16x64xbf16>
  // CHECK: moe.combine [[D]] weights [[WEIGHTS]] slot [[SLOT]] live %{{.+}} : (tensor<16x64xbf16>, tensor<8x2xf32>, tensor<8x2xi32>, tensor<1xi32>) -> tensor<8x64xbf16>
  %y = moe.combine %d weights %weights slot %slot live %live
    : (tensor<16x64xbf16>, tensor<8x2xf32>, tensor<8x2xi32>, tensor<1xi32>) -> tensor<8x64xbf16>
  return %y : tensor<8x64xbf16>
}
