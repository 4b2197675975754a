// RUN: k31-opt %s -fuse-ops -split-input-file | FileCheck %s

// The other operand of the map becomes an extra operand, and the result has the map's type.
// CHECK-LABEL: func.func @linear
// CHECK: nn.linear %arg0, %arg1 live %arg3 extras %arg2 fused ["bias", "neg"]
// The notes: one a fusion.
// CHECK-SAME: k31.notes = [{about = "fusion", choice = "bias into nn.linear", reason = "the value in between, [4, 16] of f32, is neither stored nor read back: 512 bytes and a launch less"}, {about = "fusion", choice = "neg into nn.linear"
// CHECK: ^bb0(%[[S:.*]]: f32, %[[B:.*]]: f32):
// CHECK: %[[T:.*]] = arith.addf %[[S]], %[[B]]
// CHECK: arith.negf %[[T]]
// CHECK: -> tensor<4x16xbf16>
// CHECK-NOT: nn.map
func.func @linear(%x: tensor<4x32xbf16>, %w: tensor<16x32xbf16>, %b: tensor<16xf32>, %live: tensor<1xi32>) -> tensor<4x16xbf16> {
  %y = nn.linear %x, %w live %live : (tensor<4x32xbf16>, tensor<16x32xbf16>, tensor<1xi32>) -> tensor<4x16xf32>
  %z = nn.map ["bias"] live %live (%y, %b) {
  ^bb0(%s: f32, %v: f32):
    %t = arith.addf %s, %v : f32
    nn.yield %t : f32
  } : (tensor<1xi32>, tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %r = nn.map ["neg"] live %live (%z) {
  ^bb0(%s: f32):
    %t = arith.negf %s : f32
    nn.yield %t : f32
  } : (tensor<1xi32>, tensor<4x16xf32>) -> tensor<4x16xbf16>
  return %r : tensor<4x16xbf16>
}

// -----

// The sum is read twice: it has to be stored.
// CHECK-LABEL: func.func @two_readers
// CHECK: nn.linear
// CHECK-NOT: epilogue
// CHECK: nn.map ["neg"] {{.*}} attributes {k31.notes = [{about = "apart", choice = "neg from nn.linear", reason = "others read the value in between, so that it has to be stored"}]}
func.func @two_readers(%x: tensor<4x32xbf16>, %w: tensor<16x32xbf16>, %live: tensor<1xi32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %y = nn.linear %x, %w live %live : (tensor<4x32xbf16>, tensor<16x32xbf16>, tensor<1xi32>) -> tensor<4x16xf32>
  %r = nn.map ["neg"] live %live (%y) {
  ^bb0(%s: f32):
    %t = arith.negf %s : f32
    nn.yield %t : f32
  } : (tensor<1xi32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %r, %y : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// CHECK-LABEL: func.func @conv
// CHECK: attn.short_conv {{.*}} fused ["silu"]
// CHECK-NOT: nn.map
// CHECK: tensor<4x16xbf16>
attn.pool @window members [0] : !attn.cache<conv, [3, 16], bf16>
func.func @conv(%x: tensor<4x16xbf16>, %w: tensor<16x4xf32>, %live: tensor<1xi32>, %layer: index,
                %batch: !attn.batch<rows = 4, segments = 2, blocks = 2>) -> tensor<4x16xbf16> {
  %c = attn.cache @window[%layer] : !attn.cache<conv, [3, 16], bf16>
  %y = attn.short_conv %x, %w window %c, %batch
    : (tensor<4x16xbf16>, tensor<16x4xf32>, !attn.cache<conv, [3, 16], bf16>, !attn.batch<rows = 4, segments = 2, blocks = 2>) -> tensor<4x16xf32>
  %r = nn.map ["silu"] live %live (%y) {
  ^bb0(%s: f32):
    %one = arith.constant 1.0 : f32
    %n = arith.negf %s : f32
    %e = math.exp %n : f32
    %d = arith.addf %one, %e : f32
    %o = arith.divf %s, %d : f32
    nn.yield %o : f32
  } : (tensor<1xi32>, tensor<4x16xf32>) -> tensor<4x16xbf16>
  return %r : tensor<4x16xbf16>
}

// -----

// Experts' rows end at the last offset: a map over them is an epilogue, a map over other rows is not.
// CHECK-LABEL: func.func @experts
// CHECK: moe.grouped_linear {{.*}} fused ["neg"]
// CHECK-NOT: nn.map
// CHECK-LABEL: func.func @first_expert
// CHECK: moe.grouped_linear
// CHECK-NOT: fused
// CHECK: nn.map ["neg"] {{.*}} attributes {k31.notes = [{about = "apart", choice = "neg from moe.grouped_linear", reason = "the two count different live rows"}]}
func.func @experts(%x: tensor<8x64xbf16>, %w: tensor<2x24x64xbf16>, %o: tensor<3xi32>) -> tensor<8x24xbf16> {
  %rows = nn.columns %o[2:3] : tensor<3xi32>
  %y = moe.grouped_linear %x, %w offsets %o : (tensor<8x64xbf16>, tensor<2x24x64xbf16>, tensor<3xi32>) -> tensor<8x24xf32>
  %r = nn.map ["neg"] live %rows (%y) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    nn.yield %n : f32
  } : (tensor<1xi32>, tensor<8x24xf32>) -> tensor<8x24xbf16>
  return %r : tensor<8x24xbf16>
}
func.func @first_expert(%x: tensor<8x64xbf16>, %w: tensor<2x24x64xbf16>, %o: tensor<3xi32>) -> tensor<8x24xbf16> {
  %rows = nn.columns %o[1:2] : tensor<3xi32>
  %y = moe.grouped_linear %x, %w offsets %o : (tensor<8x64xbf16>, tensor<2x24x64xbf16>, tensor<3xi32>) -> tensor<8x24xf32>
  %r = nn.map ["neg"] live %rows (%y) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    nn.yield %n : f32
  } : (tensor<1xi32>, tensor<8x24xf32>) -> tensor<8x24xbf16>
  return %r : tensor<8x24xbf16>
}
