// Every op of coll: what is printed parses again and prints the same.
// RUN: k31-opt %s | FileCheck %s
// RUN: k31-opt %s | k31-opt | FileCheck %s
// RUN: k31-opt --mlir-print-op-generic %s | k31-opt | FileCheck %s

// CHECK-LABEL: func.func @ranks
func.func @ranks(%x: tensor<8x32xbf16>, %ids: tensor<8x2xi32>, %live: tensor<1xi32>) -> tensor<8x32xbf16> {
  // CHECK: coll.all_reduce %{{.+}} over tp size 8 : tensor<8x32xbf16>
  %a = coll.all_reduce %x over tp size 8 : tensor<8x32xbf16>
  // CHECK: [[SHARE:%.+]] = coll.reduce_scatter %{{.+}} over tp size 4 : tensor<8x32xbf16>
  %b = coll.reduce_scatter %a over tp size 4 : tensor<8x32xbf16>
  // CHECK: coll.all_gather [[SHARE]] over tp size 4 : tensor<2x32xbf16>
  %c = coll.all_gather %b over tp size 4 : tensor<2x32xbf16>
  // CHECK: coll.broadcast %{{.+}} over dp size 2 : tensor<8x32xbf16>
  %d = coll.broadcast %c over dp size 2 : tensor<8x32xbf16>
  // CHECK: [[ROWS:%.+]], [[IDS:%.+]], [[SOURCE:%.+]] = coll.dispatch %{{.+}} by %{{.+}} over ep size 16 capacity 32 via peer : (
  %rows, %row_ids, %source = coll.dispatch %d by %ids over ep size 16 capacity 32 via peer
    : (tensor<8x32xbf16>, tensor<8x2xi32>) -> (tensor<32x32xbf16>, tensor<32x2xi32>, tensor<32xi32>)
  // CHECK: coll.combine [[ROWS]] from [[SOURCE]] over ep size 16 : (tensor<32x32xbf16>, tensor<32xi32>) -> tensor<8x32xbf16>
  %e = coll.combine %rows from %source over ep size 16 : (tensor<32x32xbf16>, tensor<32xi32>) -> tensor<8x32xbf16>
  // CHECK: coll.join %{{.+}} live %{{.+}} size 4 : (tensor<8x32xbf16>, tensor<1xi32>) -> tensor<2x126xbf16>
  %j = coll.join %e live %live size 4 : (tensor<8x32xbf16>, tensor<1xi32>) -> tensor<2x126xbf16>
  // CHECK: coll.rows %{{.+}} live %{{.+}} at %{{.+}} : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<2x32xbf16>
  %r = coll.rows %e live %live at %live : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<2x32xbf16>
  // CHECK: coll.part %{{.+}} live %{{.+}} at %{{.+}} : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x12xbf16>
  %p = coll.part %e live %live at %live : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x12xbf16>
  // CHECK: coll.all_reduce %{{.+}} over edp size 2 : tensor<2x126xbf16>
  %k = coll.all_reduce %j over edp size 2 : tensor<2x126xbf16>
  // CHECK: coll.send %{{.+}} to 1 over pp : tensor<8x32xbf16>
  coll.send %e to 1 over pp : tensor<8x32xbf16>
  // CHECK: coll.recv from 0 over pp : tensor<8x32xbf16>
  %f = coll.recv from 0 over pp : tensor<8x32xbf16>
  return %f : tensor<8x32xbf16>
}
