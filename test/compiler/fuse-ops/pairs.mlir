// RUN: k31-opt %s -fuse-ops -split-input-file | FileCheck %s

// Both buckets read the stack by pairs, so its rows alternate.
// CHECK: nn.stack @gate_up [@gate, @up] rows [32, 32] interleave 16
// CHECK-LABEL: func.func @small
// CHECK: nn.linear {{.*}} pair fused ["glu"]
// CHECK: ^bb0(%[[G:.*]]: f32, %[[U:.*]]: f32):
// CHECK: arith.subf %[[G]], %[[U]]
// CHECK: -> tensor<1x32xbf16>
// CHECK-NOT: nn.columns
// CHECK-LABEL: func.func @large
// CHECK: nn.linear {{.*}} pair fused ["glu"]
nn.tensor @gate "g{}" members [0] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @up "u{}" members [0] files [0] offsets [0] : tensor<32x16xbf16>
nn.stack @gate_up [@gate, @up] rows [32, 32] : tensor<64x16xbf16>
func.func @small(%x: tensor<1x16xbf16>, %live: tensor<1xi32>, %layer: index) -> tensor<1x32xbf16> {
  %w = nn.weight @gate_up[%layer] : tensor<64x16xbf16>
  %y = nn.linear %x, %w live %live : (tensor<1x16xbf16>, tensor<64x16xbf16>, tensor<1xi32>) -> tensor<1x64xbf16>
  %u = nn.columns %y[32:64] : tensor<1x64xbf16>
  %g = nn.columns %y[0:32] : tensor<1x64xbf16>
  %r = nn.map ["glu"] live %live (%g, %u) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<1x32xbf16>, tensor<1x32xbf16>) -> tensor<1x32xbf16>
  return %r : tensor<1x32xbf16>
}
func.func @large(%x: tensor<8x16xbf16>, %live: tensor<1xi32>, %layer: index) -> tensor<8x32xbf16> {
  %w = nn.weight @gate_up[%layer] : tensor<64x16xbf16>
  %y = nn.linear %x, %w live %live : (tensor<8x16xbf16>, tensor<64x16xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  %g = nn.columns %y[0:32] : tensor<8x64xbf16>
  %u = nn.columns %y[32:64] : tensor<8x64xbf16>
  %r = nn.map ["glu"] live %live (%g, %u) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<8x32xbf16>, tensor<8x32xbf16>) -> tensor<8x32xbf16>
  return %r : tensor<8x32xbf16>
}

// -----

// One bucket returns the product itself: the stack keeps its order, and the other bucket its map.
// CHECK: nn.stack @gate_up
// CHECK-NOT: interleave
// CHECK-LABEL: func.func @paired
// CHECK: nn.map ["glu"] {{.*}} attributes {k31.notes = [{about = "apart", choice = "glu from nn.linear", reason = "another op reads the same weight as it is, with its parts one after the other"}]}
// CHECK-LABEL: func.func @raw
nn.tensor @gate "g{}" members [0] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @up "u{}" members [0] files [0] offsets [0] : tensor<32x16xbf16>
nn.stack @gate_up [@gate, @up] rows [32, 32] : tensor<64x16xbf16>
func.func @paired(%x: tensor<1x16xbf16>, %live: tensor<1xi32>, %layer: index) -> tensor<1x32xbf16> {
  %w = nn.weight @gate_up[%layer] : tensor<64x16xbf16>
  %y = nn.linear %x, %w live %live : (tensor<1x16xbf16>, tensor<64x16xbf16>, tensor<1xi32>) -> tensor<1x64xbf16>
  %g = nn.columns %y[0:32] : tensor<1x64xbf16>
  %u = nn.columns %y[32:64] : tensor<1x64xbf16>
  %r = nn.map ["glu"] live %live (%g, %u) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<1x32xbf16>, tensor<1x32xbf16>) -> tensor<1x32xbf16>
  return %r : tensor<1x32xbf16>
}
func.func @raw(%x: tensor<1x16xbf16>, %live: tensor<1xi32>, %layer: index) -> tensor<1x64xbf16> {
  %w = nn.weight @gate_up[%layer] : tensor<64x16xbf16>
  %y = nn.linear %x, %w live %live : (tensor<1x16xbf16>, tensor<64x16xbf16>, tensor<1xi32>) -> tensor<1x64xbf16>
  return %y : tensor<1x64xbf16>
}

// -----

// Experts: codes and scales alternate together.
// CHECK: nn.stack @w13 [@w1, @w3] rows [32, 32] interleave 16
// CHECK: nn.stack @s13 [@s1, @s3] rows [32, 32] interleave 16
// CHECK: moe.grouped_linear {{.*}} pair fused ["glu"]
// CHECK: -> tensor<8x32xbf16>
nn.tensor @w1 "e{}.{}" members [0] files [0] offsets [0, 0] : tensor<2x32x64xf4E2M1FN>
nn.tensor @w3 "f{}.{}" members [0] files [0] offsets [0, 0] : tensor<2x32x64xf4E2M1FN>
nn.tensor @s1 "g{}.{}" members [0] files [0] offsets [0, 0] : tensor<2x32x2xf8E8M0FNU>
nn.tensor @s3 "h{}.{}" members [0] files [0] offsets [0, 0] : tensor<2x32x2xf8E8M0FNU>
nn.stack @w13 [@w1, @w3] rows [32, 32] : tensor<2x64x64xf4E2M1FN>
nn.stack @s13 [@s1, @s3] rows [32, 32] : tensor<2x64x2xf8E8M0FNU>
func.func @experts(%x: tensor<8x64xbf16>, %o: tensor<3xi32>, %layer: index) -> tensor<8x32xbf16> {
  %live = nn.columns %o[2:3] : tensor<3xi32>
  %w = nn.weight @w13[%layer] : tensor<2x64x64xf4E2M1FN>
  %s = nn.weight @s13[%layer] : tensor<2x64x2xf8E8M0FNU>
  %y = moe.grouped_linear %x, %w scale %s offsets %o
    : (tensor<8x64xbf16>, tensor<2x64x64xf4E2M1FN>, tensor<2x64x2xf8E8M0FNU>, tensor<3xi32>) -> tensor<8x64xbf16>
  %g = nn.columns %y[0:32] : tensor<8x64xbf16>
  %u = nn.columns %y[32:64] : tensor<8x64xbf16>
  %r = nn.map ["glu"] live %live (%g, %u) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    nn.yield %d : f32
  } : (tensor<1xi32>, tensor<8x32xbf16>, tensor<8x32xbf16>) -> tensor<8x32xbf16>
  return %r : tensor<8x32xbf16>
}

// -----

// A map over other rows than the experts' stays: here over those of the first expert alone.
// CHECK-LABEL: func.func @first_expert
// CHECK: moe.grouped_linear
// CHECK-NOT: pair
// CHECK: nn.map ["glu"]
nn.tensor @w1 "e{}.{}" members [0] files [0] offsets [0, 0] : tensor<2x32x64xbf16>
nn.tensor @w3 "f{}.{}" members [0] files [0] offsets [0, 0] : tensor<2x32x64xbf16>
nn.stack @w13 [@w1, @w3] rows [32, 32] : tensor<2x64x64xbf16>
func.func @first_expert(%x: tensor<8x64xbf16>, %o: tensor<3xi32>, %layer: index) -> tensor<8x32xbf16> {
  %live = nn.columns %o[1:2] : tensor<3xi32>
  %w = nn.weight @w13[%layer] : tensor<2x64x64xbf16>
  %y = moe.grouped_linear %x, %w offsets %o : (tensor<8x64xbf16>, tensor<2x64x64xbf16>, tensor<3xi32>) -> tensor<8x64xbf16>
  %g = nn.columns %y[0:32] : tensor<8x64xbf16>
  %u = nn.columns %y[32:64] : tensor<8x64xbf16>
  %r = nn.map ["glu"] live %live (%g, %u) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    nn.yield %d : f32
  } : (tensor<1xi32>, tensor<8x32xbf16>, tensor<8x32xbf16>) -> tensor<8x32xbf16>
  return %r : tensor<8x32xbf16>
}
