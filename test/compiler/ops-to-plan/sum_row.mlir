// A sum and the row op on it are one command: its launch has the live rows, the operands and the results of the row op in front of
// the area.
// RUN: k31-opt %s -convert-ops-to-plan | FileCheck %s
// RUN: k31-opt %s -convert-ops-to-plan -schedule -assign-memory -compile-kernels=target=cpu -check-plan -o /dev/null
// RUN: sed 's/, k31.kernel = {.*}}/}/' %s | not k31-opt -convert-ops-to-plan 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}moves rows between ranks in a way that no command of a plan has
// CHECK: plan.arena @shared shared bytes 53248
// CHECK: plan.kernel @coll.sum_row.0 "coll.sum_row add" {{.*}} args [tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xui8>]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
// CHECK: plan.entry @e
// CHECK: plan.input "hidden" [[X:%.+]] : tensor<8x32xf32>
// CHECK: plan.input "bank" [[BANK:%.+]] :
// CHECK: [[P:%.+]] = plan.view [[BANK]] at 0
// CHECK: [[L:%.+]] = plan.view %{{.+}} at 0 : tensor<4xi32>
// CHECK: [[OUT:%.+]] = plan.alloc @io : tensor<4x32xf32>
// CHECK: [[SUM:%.+]] = plan.alloc @activations : tensor<4x32xf32>
// CHECK: [[AREA:%.+]] = plan.slice @shared at 0 : tensor<51840xui8>
// CHECK: plan.collective reduce_scatter over tp via peer "f32" count 256 [[X]] to [[SUM]] by @coll.sum_row.0 grid [1, 1, 1] block 1 smem 0 in [[AREA]] : tensor<51840xui8> with ([[L]] read : tensor<4xui8>, [[P]] read : tensor<512xui8>, [[OUT]] write : tensor<4x32xf32>) on 0 "sum_row" : tensor<8x32xf32> to tensor<4x32xf32>
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 3 : i64, layer_begin = 1 : i64, layer_end = 2 : i64, hidden = 32 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.mesh = {tp = 2 : i64, dp = 1 : i64, ep = 2 : i64, pp = 1 : i64, node = 2 : i64},
  k31.checkpoint = {hash = "00", files = []},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  func.func @e(%x: tensor<8x32xf32> {k31.input = "hidden"}, %p: tensor<4x32xf32> {k31.input = "bank"}, %live: tensor<1xi32> {k31.input = "counts", k31.offset = 0 : i64})
      -> (tensor<4x32xf32> {k31.output = "hidden"}) attributes {k31.entry = {kind = "prefill", rows = 8 : i64, segments = 1 : i64, logit_rows = 0 : i64}} {
    %s, %y = coll.sum_row ["add"] of %x over tp size 2 scatter at 1 live %live (%p) attributes {k31.a, k31.kernel = {name = "coll.sum_row", workspace = 0 : i64, tasks = 1 : i64, config = {at = 1 : i64, rows = 4 : i64, peer = {form = 3 : i64, ranks = 2 : i64, region = 800 : i64, words = 8 : i64, type = "f32"}, row = {cols = 32 : i64, inputs = 2 : i64, ld = array<i32: 32, 32>, outputs = 1 : i64, out_ld = array<i32: 32>}}}} {
    ^bb0(%v: f32, %w: f32):
      %o = arith.addf %v, %w : f32
      nn.yield %o : f32
    } : (tensor<8x32xf32>, tensor<1xi32>, tensor<4x32xf32>) -> (tensor<4x32xf32>, tensor<4x32xf32>)
    return %y : tensor<4x32xf32>
  }
}
