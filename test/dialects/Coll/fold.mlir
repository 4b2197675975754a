// One rank has nothing to exchange: the four ops that keep rows fold to their operand. Larger axes stay.
// RUN: k31-opt --canonicalize %s | FileCheck %s

// CHECK-LABEL: func.func @alone
// CHECK-NEXT: return %arg0
func.func @alone(%x: tensor<8x32xbf16>) -> tensor<8x32xbf16> {
  %a = coll.all_reduce %x over tp size 1 : tensor<8x32xbf16>
  %b = coll.reduce_scatter %a over tp size 1 : tensor<8x32xbf16>
  %c = coll.all_gather %b over tp size 1 : tensor<8x32xbf16>
  %d = coll.broadcast %c over dp size 1 : tensor<8x32xbf16>
  return %d : tensor<8x32xbf16>
}

// CHECK-LABEL: func.func @many
// CHECK: coll.all_reduce
// CHECK: coll.broadcast
func.func @many(%x: tensor<8x32xbf16>) -> tensor<8x32xbf16> {
  %a = coll.all_reduce %x over tp size 2 : tensor<8x32xbf16>
  %d = coll.broadcast %a over dp size 2 : tensor<8x32xbf16>
  return %d : tensor<8x32xbf16>
}

// The row op without the sum: x is it.
// CHECK-LABEL: func.func @row_alone
// CHECK: [[Y:%.+]] = nn.map ["add"] live %arg1(%arg2, %arg0)
// CHECK: [[N:%.+]] = nn.row ["norm"] live %arg1 groups 2(%arg0)
// CHECK: arith.constant 2.000000e+00
// CHECK: return %arg0, [[Y]], [[N]]
func.func @row_alone(%x: tensor<8x32xbf16>, %live: tensor<1xi32>, %e: tensor<8x32xbf16>)
    -> (tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x32xbf16>) {
  %s, %y = coll.sum_row ["add"] of %x over tp size 1 at 1 live %live (%e) {
  ^bb0(%v: f32, %w: f32):
    %o = arith.addf %v, %w : f32
    nn.yield %o : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>, tensor<8x32xbf16>) -> (tensor<8x32xbf16>, tensor<8x32xf32>)
  %t, %n = coll.sum_row ["norm"] of %x over tp size 1 scatter at 0 live %live groups 2 () {
  ^bb0(%v: f32):
    %two = arith.constant 2.0 : f32
    %q = nn.sum %v : f32
    %r = arith.mulf %q, %two : f32
    %o = arith.mulf %v, %r : f32
    nn.yield %o : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x32xbf16>)
  return %s, %y, %n : tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x32xbf16>
}

// CHECK-LABEL: func.func @row_of_two
// CHECK: coll.sum_row
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.constant
func.func @row_of_two(%x: tensor<8x32xbf16>, %live: tensor<1xi32>) -> tensor<8x32xbf16> {
  %s, %y = coll.sum_row ["half"] of %x over tp size 2 at 0 live %live () {
  ^bb0(%v: f32):
    %half = arith.constant 0.5 : f32
    %o = arith.mulf %v, %half : f32
    nn.yield %o : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x32xbf16>)
  return %y : tensor<8x32xbf16>
}
