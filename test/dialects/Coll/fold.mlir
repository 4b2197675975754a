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
