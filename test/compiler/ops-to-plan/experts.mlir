// RUN: k31-opt %s -convert-ops-to-plan | FileCheck %s

// Experts: one plan.weights a layer and part, its members are the experts, w1 and w3 alternate in groups of 16 rows. Two f4 codes
// share a byte of the file. A vector's rows are its elements, whatever the checkpoint's shape.
// CHECK-DAG: plan.weights "layers.1.experts.{}.w1" members [0, 1] "U8" [32, 16] in @weights at 0 stride 1024 rows [0, 32] of 16 bytes [0, 16] pitch 16 group [16, 32, 0] files [1, 1] offsets [0, 512]
// CHECK-DAG: plan.weights "layers.1.experts.{}.w3" members [0, 1] "U8" [32, 16] in @weights at 0 stride 1024 rows [0, 32] of 16 bytes [0, 16] pitch 16 group [16, 32, 16] files [1, 1] offsets [1024, 1536]
// CHECK-DAG: plan.weights "layers.4.experts.{}.w1" members [0, 1] "U8" [32, 16] in @weights at 2048 stride 1024
// CHECK-DAG: plan.weights "layers.{}.A_log" members [1, 4] "F32" [1, 1, 8, 1] in @weights at 4096 stride 256 rows [0, 2] of 4 bytes [0, 4] pitch 4 group [2, 2, 0]
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 5 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.checkpoint = {hash = "00", files = [{name = "a", bytes = 9 : i64}, {name = "b", bytes = 9 : i64}]},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  nn.tensor @w1 "layers.{}.experts.{}.w1" members [1, 4] files [1, 1, 0, 0] offsets [0, 512, 2048, 2560] : tensor<2x32x32xf4E2M1FN>
  nn.tensor @w3 "layers.{}.experts.{}.w3" members [1, 4] files [1, 1, 0, 0] offsets [1024, 1536, 3072, 3584] : tensor<2x32x32xf4E2M1FN>
  nn.tensor @A_log "layers.{}.A_log" members [1, 4] files [0] offsets [8000, 8100] : tensor<1x1x8x1xf32>
  nn.stack @w13 [@w1, @w3] rows [32, 32] interleave 16 : tensor<2x64x32xf4E2M1FN>
  nn.stack @A [@A_log] rows [2] : tensor<2xf32>
  func.func @e(%live: tensor<1xi32> {k31.input = "counts", k31.offset = 0 : i64}) attributes {k31.entry = {kind = "decode", rows = 1 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    %c4 = arith.constant 4 : index
    %w = nn.weight @w13[%c4] : tensor<2x64x32xf4E2M1FN>
    %a = nn.weight @A[%c4] : tensor<2xf32>
    return
  }
}
