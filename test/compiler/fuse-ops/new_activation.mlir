// An activation that no file of the project knows, squared ReLU on the gate, goes through fusion and kernel choice as IR alone:
// gate and up become one paired product, the region its epilogue. docs/add-an-op.md walks through it.
// RUN: k31-opt %s -fuse-ops -select-kernels | FileCheck %s

// CHECK: nn.stack @gate_up [@gate, @up] rows [48, 48] interleave 16
// CHECK-LABEL: func.func @mlp
// CHECK: nn.linear {{.*}} pair fused ["relu2_glu"]
// CHECK-SAME: config = {epilogue = 1 : i64, k = 64 : i64, ld_x = 64 : i64, n = 96 : i64
// CHECK-SAME: pair = 1
// CHECK: ^bb0(%[[G:.*]]: f32, %[[U:.*]]: f32):
// CHECK: arith.maximumf %[[G]]
// CHECK: -> tensor<4x48xbf16>
// CHECK-NOT: nn.map
nn.tensor @gate "layers.{}.mlp.gate_proj.weight" members [0] files [0] offsets [64] : tensor<48x64xbf16>
nn.tensor @up "layers.{}.mlp.up_proj.weight" members [0] files [0] offsets [6208] : tensor<48x64xbf16>
nn.stack @gate_up [@gate, @up] rows [48, 48] : tensor<96x64xbf16>
func.func @mlp(%x: tensor<4x64xbf16>, %live: tensor<1xi32>, %layer: index) -> tensor<4x48xbf16> {
  %w = nn.weight @gate_up[%layer] : tensor<96x64xbf16>
  %both = nn.linear %x, %w live %live : (tensor<4x64xbf16>, tensor<96x64xbf16>, tensor<1xi32>) -> tensor<4x96xbf16>
  %gate = nn.columns %both[0 : 48] : tensor<4x96xbf16>
  %up = nn.columns %both[48 : 96] : tensor<4x96xbf16>
  %h = nn.map ["relu2_glu"] live %live (%gate, %up) {
  ^bb0(%g: f32, %u: f32):
    %zero = arith.constant 0.0 : f32
    %positive = arith.maximumf %g, %zero : f32
    %square = arith.mulf %positive, %positive : f32
    %out = arith.mulf %square, %u : f32
    nn.yield %out : f32
  } : (tensor<1xi32>, tensor<4x48xbf16>, tensor<4x48xbf16>) -> tensor<4x48xbf16>
  return %h : tensor<4x48xbf16>
}
