// Every op of level 1: what is printed parses again and prints the same.
// RUN: k31-opt %s | FileCheck %s
// RUN: k31-opt %s | k31-opt | FileCheck %s
// RUN: k31-opt --mlir-print-op-generic %s | k31-opt | FileCheck %s

nn.tensor @embed "embed.weight" members [] files [0] offsets [0] : tensor<64x32xbf16>
nn.tensor @gain "layers.{}.norm.weight" members [0, 1] files [0] offsets [0, 64] : tensor<32xf32>
nn.tensor @proj "layers.{}.proj.weight" members [0, 1] files [0] offsets [0, 64] : tensor<1x32xf32>
nn.tensor @pp "layers.{}.p.weight" members [0] files [0] offsets [0] : tensor<32x32xbf16>
nn.tensor @conv "layers.{}.conv.weight" members [0] files [0] offsets [0] : tensor<32x1x4xf32>
nn.tensor @p16 "layers.{}.f_a.weight" members [0] files [0] offsets [0] : tensor<16x32xbf16>
nn.tensor @b16 "layers.{}.f_b.weight" members [0] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @beta "layers.{}.b.weight" members [0] files [0] offsets [0] : tensor<2x32xbf16>
nn.tensor @A_log "layers.{}.A_log" members [0] files [0] offsets [0] : tensor<8xf32>
nn.tensor @v16 "layers.{}.o_norm" members [0] files [0] offsets [0] : tensor<16xf32>
nn.tensor @q_b "layers.{}.q_b" members [0] files [0] offsets [0] : tensor<40x16xbf16>
nn.tensor @q "layers.{}.q" members [0] files [0] offsets [0] : tensor<40x32xbf16>
nn.tensor @kv_a "layers.{}.kv_a" members [0] files [0] offsets [0] : tensor<20x32xbf16>
nn.tensor @kv_b "layers.{}.kv_b" members [0] files [0] offsets [0] : tensor<64x16xbf16>
nn.tensor @bias "layers.{}.bias" members [0] files [0] offsets [0] : tensor<4xf32>
nn.tensor @gate "layers.{}.gate" members [0] files [0] offsets [0] : tensor<4x32xbf16>
nn.tensor @codes "layers.{}.experts.{}.w" members [0] files [0] offsets [0, 0, 0, 0] : tensor<4x32x32xf4E2M1FN>
nn.tensor @scales "layers.{}.experts.{}.s" members [0] files [0] offsets [0, 0, 0, 0] : tensor<4x32x1xf8E8M0FNU>
nn.tensor @dense "layers.{}.experts.{}.d" members [0] files [0] offsets [0, 0, 0, 0] : tensor<4x16x16xbf16>

// CHECK-LABEL: func.func @text
func.func @text(%ids: tensor<?xi32>, %rows: tensor<?xi32>, %layer: index) -> tensor<?x64xf32> {
  // CHECK: [[X:%.+]] = k31.embed %{{.+}} weights {embed_tokens = @embed} : (tensor<?xi32>) -> tensor<?x32xbf16>
  %x = k31.embed %ids weights {embed_tokens = @embed} : (tensor<?xi32>) -> tensor<?x32xbf16>
  // CHECK: k31.rms_norm [[X]] layer %{{.+}} weights {gain = @gain} eps 9.99999974E-6 : tensor<?x32xbf16>
  %n = k31.rms_norm %x layer %layer weights {gain = @gain} eps 1.0e-5 : tensor<?x32xbf16>
  // CHECK: k31.rms_norm [[X]] weights {gain = @gain}
  %m = k31.rms_norm %x weights {gain = @gain} eps 1.0e-5 : tensor<?x32xbf16>
  // CHECK: k31.attn_res %{{.+}}, %{{.+}} layer %{{.+}} weights {norm = @gain, proj = @proj} eps
  %r = k31.attn_res %n, %m layer %layer weights {norm = @gain, proj = @proj} eps 1.0e-5
    : (tensor<?x32xbf16>, tensor<?x32xbf16>, index) -> tensor<?x32xbf16>
  // CHECK: k31.add %{{.+}}, %{{.+}} : tensor<?x32xbf16>
  %s = k31.add %r, %x : tensor<?x32xbf16>
  // CHECK: k31.head %{{.+}} at %{{.+}} weights {lm_head = @embed} : (tensor<?x32xbf16>, tensor<?xi32>) -> tensor<?x64xf32>
  %y = k31.head %s at %rows weights {lm_head = @embed} : (tensor<?x32xbf16>, tensor<?xi32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func private @kda
func.func private @kda(%layer: index, %x: tensor<?x32xbf16>) -> tensor<?x32xbf16> {
  // CHECK: k31.kda %{{.+}} layer %{{.+}} weights {A_log = @A_log, {{.+}}} heads 2 x 16 taps 4 gate_bound -5.000000e+00 eps {{.+}} : tensor<?x32xbf16>
  %a = k31.kda %x layer %layer weights {q_proj = @pp, k_proj = @pp, v_proj = @pp, q_conv1d = @conv, k_conv1d = @conv, v_conv1d = @conv,
    f_a_proj = @p16, f_b_proj = @b16, b_proj = @beta, A_log = @A_log, dt_bias = @gain, o_norm = @v16, o_proj = @pp, g_proj = @pp}
    heads 2 x 16 taps 4 gate_bound -5.0 eps 1.0e-5 : tensor<?x32xbf16>
  // CHECK: k31.kda {{.+}}g_a_proj = @p16, g_b_proj = @b16{{.+}} heads 2 x 16 taps 4 eps
  %b = k31.kda %a layer %layer weights {q_proj = @pp, k_proj = @pp, v_proj = @pp, q_conv1d = @conv, k_conv1d = @conv, v_conv1d = @conv,
    f_a_proj = @p16, f_b_proj = @b16, b_proj = @beta, A_log = @A_log, dt_bias = @gain, o_norm = @v16, o_proj = @pp, g_a_proj = @p16,
    g_b_proj = @b16} heads 2 x 16 taps 4 eps 1.0e-5 : tensor<?x32xbf16>
  return %b : tensor<?x32xbf16>
}

// CHECK-LABEL: func.func private @mla
func.func private @mla(%layer: index, %x: tensor<?x32xbf16>) -> tensor<?x32xbf16> {
  // CHECK: [[QA:%.+]] = k31.query_latent %{{.+}} layer %{{.+}} weights {q_a_layernorm = @v16, q_a_proj = @p16} eps {{.+}} : (tensor<?x32xbf16>, index) -> tensor<?x16xbf16>
  %qa = k31.query_latent %x layer %layer weights {q_a_proj = @p16, q_a_layernorm = @v16} eps 1.0e-5
    : (tensor<?x32xbf16>, index) -> tensor<?x16xbf16>
  // CHECK: [[IDS:%.+]] = k31.dsa %{{.+}}, [[QA]] layer %{{.+}} weights {{{.+}}} heads 2 x 16 top_k 8 eps
  %ids = k31.dsa %x, %qa layer %layer weights {wq_b = @b16, wk = @p16, k_norm = @v16, k_norm_bias = @v16, weights_proj = @beta}
    heads 2 x 16 top_k 8 eps 1.0e-6 : (tensor<?x32xbf16>, tensor<?x16xbf16>, index) -> tensor<?x8xi32>
  // CHECK: k31.mla %{{.+}} query [[QA]] selected [[IDS]] layer %{{.+}} weights {{{.+}}} heads 2 kv_rank 16 nope 16 rope 4 value 16 eps
  %a = k31.mla %x query %qa selected %ids layer %layer weights {q_b_proj = @q_b, kv_a_proj_with_mqa = @kv_a, kv_a_layernorm = @v16,
    kv_b_proj = @kv_b, o_proj = @pp, g_proj = @pp} heads 2 kv_rank 16 nope 16 rope 4 value 16 eps 1.0e-5
    : (tensor<?x32xbf16>, tensor<?x16xbf16>, tensor<?x8xi32>, index) -> tensor<?x32xbf16>
  // CHECK: k31.mla %{{[^ ]+}} layer %{{.+}} weights {{{.+}}q_proj = @q} heads 2
  %b = k31.mla %a layer %layer weights {q_proj = @q, kv_a_proj_with_mqa = @kv_a, kv_a_layernorm = @v16, kv_b_proj = @kv_b, o_proj = @pp}
    heads 2 kv_rank 16 nope 16 rope 4 value 16 eps 1.0e-5 : (tensor<?x32xbf16>, index) -> tensor<?x32xbf16>
  return %b : tensor<?x32xbf16>
}

// CHECK-LABEL: func.func private @mlps
func.func private @mlps(%layer: index, %x: tensor<?x32xbf16>) -> tensor<?x32xbf16> {
  // CHECK: k31.mlp %{{.+}} layer %{{.+}} weights {down_proj = @pp, gate_proj = @pp, up_proj = @pp} act <"silu"> : tensor<?x32xbf16>
  %a = k31.mlp %x layer %layer weights {gate_proj = @pp, up_proj = @pp, down_proj = @pp} act <"silu"> : tensor<?x32xbf16>
  // CHECK: k31.latent_moe %{{.+}} layer %{{.+}} weights {{{.+}}} act <"situ", beta = 4.000000e+00 : f32, linear_beta = 2.500000e+01 : f32> experts 4 top_k 2 latent 0 renormalize true scale 1.000000e+00 eps
  %b = k31.latent_moe %a layer %layer weights {gate = @gate, e_score_correction_bias = @bias, shared.gate_proj = @pp, shared.up_proj = @pp,
    shared.down_proj = @pp, w1_packed = @codes, w1_scale = @scales, w2_packed = @codes, w2_scale = @scales, w3_packed = @codes, w3_scale = @scales}
    act <"situ", beta = 4.0 : f32, linear_beta = 25.0 : f32> experts 4 top_k 2 latent 0 renormalize true scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  // CHECK: k31.latent_moe {{.+}}routed_expert_norm = @v16{{.+}} act <"situ", beta = 4.000000e+00 : f32> experts 4 top_k 2 latent 16 renormalize false
  %c = k31.latent_moe %b layer %layer weights {gate = @gate, e_score_correction_bias = @bias, shared.gate_proj = @pp, shared.up_proj = @pp,
    shared.down_proj = @pp, w1 = @dense, w2 = @dense, w3 = @dense, routed_expert_down_proj = @p16, routed_expert_up_proj = @b16,
    routed_expert_norm = @v16} act <"situ", beta = 4.0 : f32> experts 4 top_k 2 latent 16 renormalize false scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  return %c : tensor<?x32xbf16>
}
