// Every op of coll: what is printed parses again and prints the same.
// RUN: k31-opt %s | FileCheck %s
// RUN: k31-opt %s | k31-opt | FileCheck %s
// RUN: k31-opt --mlir-print-op-generic %s | k31-opt | FileCheck %s

// CHECK-LABEL: func.func @ranks
func.func @ranks(%x: tensor<8x32xbf16>, %ids: tensor<4x2xi32>, %weights: tensor<4x2xf32>, %live: tensor<1xi32>) -> tensor<8x32xbf16> {
  // CHECK: coll.all_reduce %{{.+}} over tp size 8 : tensor<8x32xbf16>
  %a = coll.all_reduce %x over tp size 8 : tensor<8x32xbf16>
  // CHECK: [[SHARE:%.+]] = coll.reduce_scatter %{{.+}} over tp size 4 : tensor<8x32xbf16>
  %b = coll.reduce_scatter %a over tp size 4 : tensor<8x32xbf16>
  // CHECK: coll.all_gather [[SHARE]] over tp size 4 : tensor<2x32xbf16>
  %c = coll.all_gather %b over tp size 4 : tensor<2x32xbf16>
  // CHECK: coll.broadcast %{{.+}} over dp size 2 : tensor<8x32xbf16>
  %d = coll.broadcast %c over dp size 2 : tensor<8x32xbf16>
  // CHECK: [[OWN:%.+]], [[OWNLIVE:%.+]] = coll.own_rows %{{.+}} live %{{.+}} at %{{.+}} size 2 : tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>
  %own, %own_live = coll.own_rows %d live %live at %live size 2 : tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>
  // CHECK: [[PIECES:%.+]], [[UNITS:%.+]], [[SLOT:%.+]] = coll.pack [[OWN]] by %{{.+}}, %{{.+}} live [[OWNLIVE]] size 4 share 7 : (
  %pieces, %units, %slot = coll.pack %own by %ids, %weights live %own_live size 4 share 7
    : (tensor<4x32xbf16>, tensor<4x2xi32>, tensor<4x2xf32>, tensor<1xi32>) -> (tensor<4x336xui8>, tensor<4xi32>, tensor<4x4xi32>)
  // CHECK: [[THERE:%.+]] = coll.dispatch [[PIECES]] live [[UNITS]] over rail size 4 unit 16 via peer : tensor<4x336xui8>, tensor<4xi32>
  %there = coll.dispatch %pieces live %units over rail size 4 unit 16 via peer : tensor<4x336xui8>, tensor<4xi32>
  // CHECK: [[ROWS:%.+]], [[IDS:%.+]], [[WEIGHTS:%.+]], [[LIVE:%.+]] = coll.unpack [[THERE]] : (
  %rows, %row_ids, %row_weights, %row_live = coll.unpack %there
    : (tensor<4x336xui8>) -> (tensor<16x32xbf16>, tensor<16x2xi32>, tensor<16x2xf32>, tensor<4xi32>)
  // CHECK: coll.pack [[ROWS]] by [[IDS]], [[WEIGHTS]] live [[LIVE]] at %{{.+}} size 2 share 7 : (
  %again, %more, %slots = coll.pack %rows by %row_ids, %row_weights live %row_live at %live size 2 share 7
    : (tensor<16x32xbf16>, tensor<16x2xi32>, tensor<16x2xf32>, tensor<4xi32>, tensor<1xi32>)
    -> (tensor<2x1296xui8>, tensor<2xi32>, tensor<16x2xi32>)
  // CHECK: [[BACK:%.+]] = coll.combine [[ROWS]] live [[LIVE]] over rail size 4 unit 64 : tensor<16x32xbf16>, tensor<4xi32>
  %back = coll.combine %rows live %row_live over rail size 4 unit 64 : tensor<16x32xbf16>, tensor<4xi32>
  // CHECK: moe.combine [[BACK]] slot [[SLOT]] live [[OWNLIVE]] : (
  %sum = moe.combine %back slot %slot live %own_live
    : (tensor<16x32xbf16>, tensor<4x4xi32>, tensor<1xi32>) -> tensor<4x32xbf16>
  // CHECK: [[ALL:%.+]] = coll.all_gather
  %e = coll.all_gather %sum over tp size 2 : tensor<4x32xbf16>
  // CHECK: coll.join %{{.+}} live %{{.+}} size 4 : (tensor<8x32xbf16>, tensor<1xi32>) -> tensor<2x126xbf16>
  %j = coll.join %e live %live size 4 : (tensor<8x32xbf16>, tensor<1xi32>) -> tensor<2x126xbf16>
  // CHECK: coll.part %{{.+}} live %{{.+}} at %{{.+}} : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x12xbf16>
  %p = coll.part %e live %live at %live : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x12xbf16>
  // CHECK: coll.all_reduce %{{.+}} over edp size 2 : tensor<2x126xbf16>
  %k = coll.all_reduce %j over edp size 2 : tensor<2x126xbf16>
  // The sum, and an addition on it.
  // CHECK: %{{.+}}, %{{.+}} = coll.sum_row ["add"] of %{{.+}} over tp size 8 at 1 live %{{.+}}(%{{.+}}) {
  // CHECK: } : (tensor<8x32xbf16>, tensor<1xi32>, tensor<8x32xbf16>) -> (tensor<8x32xbf16>, tensor<8x32xf32>)
  %s, %o = coll.sum_row ["add"] of %x over tp size 8 at 1 live %live (%e) {
  ^bb0(%v: f32, %w: f32):
    %y = arith.addf %v, %w : f32
    nn.yield %y : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>, tensor<8x32xbf16>) -> (tensor<8x32xbf16>, tensor<8x32xf32>)
  // A share of the rows, and a norm of each of two groups of columns.
  // CHECK: coll.sum_row ["norm"] of %{{.+}} over tp size 4 scatter at 0 live %{{.+}} groups 2() attributes {k31.note} {
  %t, %n = coll.sum_row ["norm"] of %x over tp size 4 scatter at 0 live %live groups 2 () attributes {k31.note} {
  ^bb0(%v: f32):
    %q = nn.sum %v : f32
    %y = arith.mulf %v, %q : f32
    nn.yield %y : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<2x32xbf16>, tensor<2x32xbf16>)
  // CHECK: coll.send %{{.+}} to 1 over pp : tensor<8x32xbf16>
  coll.send %e to 1 over pp : tensor<8x32xbf16>
  // CHECK: coll.recv from 0 over pp : tensor<8x32xbf16>
  %f = coll.recv from 0 over pp : tensor<8x32xbf16>
  return %f : tensor<8x32xbf16>
}
