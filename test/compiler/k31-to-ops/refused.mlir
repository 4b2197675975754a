// Layers that share a name for weights or caches must read them alike: here 2 heads of 16 in layer 0, 1 head of 32 in layer 1.
// RUN: not k31-opt %s --assign-parallelism --convert-k31-to-ops 2>&1 | FileCheck %s
// CHECK-DAG: error: {{.*}}@stack.A_log is read as rows [1] of [@A_log], and elsewhere as rows [2] of [@A_log]; ops that share a weight must read it alike
// CHECK-DAG: error: {{.*}}@pool.kda holds '!attn.cache<kda, [2, 16, 16], f32>' and is asked for '!attn.cache<kda, [1, 32, 32], f32>'; all layers of a kind have caches of one shape
module attributes {
  k31.options = {max_context = 256 : i64, max_batch = 1 : i64, prefill_chunk = 1 : i64, logit_rows = 1 : i64, cache_tokens = 256 : i64}} {
  nn.tensor @embed "embed.weight" members [] files [0] offsets [0] : tensor<64x32xbf16>
  nn.tensor @pp "layers.{}.p.weight" members [0, 1] files [0] offsets [0, 0] : tensor<32x32xbf16>
  nn.tensor @conv "layers.{}.conv.weight" members [0, 1] files [0] offsets [0, 0] : tensor<32x4xf32>
  nn.tensor @p16 "layers.{}.f_a.weight" members [0] files [0] offsets [0] : tensor<16x32xbf16>
  nn.tensor @b16 "layers.{}.f_b.weight" members [0] files [0] offsets [0] : tensor<32x16xbf16>
  nn.tensor @beta2 "layers.{}.b2.weight" members [0] files [0] offsets [0] : tensor<2x32xbf16>
  nn.tensor @beta1 "layers.{}.b1.weight" members [1] files [0] offsets [0] : tensor<1x32xbf16>
  nn.tensor @A_log "layers.{}.A_log" members [0, 1] files [0] offsets [0, 0] : tensor<8xf32>
  nn.tensor @dt "layers.{}.dt_bias" members [0, 1] files [0] offsets [0, 0] : tensor<32xf32>
  nn.tensor @v16 "layers.{}.o16" members [0] files [0] offsets [0] : tensor<16xf32>
  nn.tensor @v32 "layers.{}.o32" members [1] files [0] offsets [0] : tensor<32xf32>

  func.func private @body.two(%layer: index, %x: tensor<?x32xbf16>) -> tensor<?x32xbf16> {
    %a = k31.kda %x layer %layer weights {q_proj = @pp, k_proj = @pp, v_proj = @pp, q_conv1d = @conv, k_conv1d = @conv, v_conv1d = @conv,
      f_a_proj = @p16, f_b_proj = @b16, b_proj = @beta2, A_log = @A_log, dt_bias = @dt, o_norm = @v16, o_proj = @pp, g_proj = @pp}
      heads 2 x 16 taps 4 gate_bound -5.0 eps 1.0e-5 : tensor<?x32xbf16>
    return %a : tensor<?x32xbf16>
  }
  func.func private @body.one(%layer: index, %x: tensor<?x32xbf16>) -> tensor<?x32xbf16> {
    %a = k31.kda %x layer %layer weights {q_proj = @pp, k_proj = @pp, v_proj = @pp, q_conv1d = @conv, k_conv1d = @conv, v_conv1d = @conv,
      f_a_proj = @pp, f_b_proj = @pp, b_proj = @beta1, A_log = @A_log, dt_bias = @dt, o_norm = @v32, o_proj = @pp, g_proj = @pp}
      heads 1 x 32 taps 4 gate_bound -5.0 eps 1.0e-5 : tensor<?x32xbf16>
    return %a : tensor<?x32xbf16>
  }
  func.func @text(%ids: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = k31.embed %ids weights {embed_tokens = @embed} : (tensor<?xi32>) -> tensor<?x32xbf16>
    %a = func.call @body.two(%c0, %x) : (index, tensor<?x32xbf16>) -> tensor<?x32xbf16>
    %b = func.call @body.one(%c1, %a) : (index, tensor<?x32xbf16>) -> tensor<?x32xbf16>
    %y = k31.head %b at %rows weights {lm_head = @embed} : (tensor<?x32xbf16>, tensor<?xi32>) -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }
}
