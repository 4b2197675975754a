// RUN: k31-opt %s -convert-ops-to-plan | FileCheck %s

// A view of a vector is one row: the number of grouped rows behind the offsets of three experts, 4 bytes at 12.
// CHECK: %[[O:.*]] = plan.alloc @io : tensor<4xi32>
// CHECK: %[[R:.*]] = plan.view %[[O]] at 12 : tensor<4xi32> -> tensor<4xui8>
// CHECK: plan.launch @nn.row.0 on 0 grid [1, 1, 1] (%[[R]] read : tensor<4xui8>
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.checkpoint = {hash = "00", files = []},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  func.func @e(%o: tensor<4xi32> {k31.input = "logit_rows"}, %x: tensor<2x4xf32> {k31.input = "hidden"}) -> (tensor<2x4xf32> {k31.output = "hidden"})
      attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    %rows = nn.columns %o[3:4] : tensor<4xi32>
    %y = nn.map ["neg"] live %rows (%x) attributes {k31.kernel = {name = "nn.row", config = {}, tasks = 1 : i64, workspace = 0 : i64}} {
    ^bb0(%a: f32):
      %s = arith.negf %a : f32
      nn.yield %s : f32
    } : (tensor<1xi32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}
