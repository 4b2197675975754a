// One case a message of the verifiers.
// RUN: k31-opt %s -split-input-file -verify-diagnostics

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'gain'}}
  %0 = k31.rms_norm %x weights {} eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights have the unknown key 'bias', expected gain}}
  %0 = k31.rms_norm %x weights {gain = @gain, bias = @gain} eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weight 'gain' is "gain", expected the symbol of an nn.tensor}}
  %0 = k31.rms_norm %x weights {gain = "gain"} eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weight 'gain' is @f, which is not an nn.tensor}}
  %0 = k31.rms_norm %x weights {gain = @f} eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<16xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weight 'gain' (@gain) has shape [16], expected [32]}}
  %0 = k31.rms_norm %x weights {gain = @gain} eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x?xbf16>) {
  // expected-error @below {{x is 'tensor<?x?xbf16>', expected [T, C] with a fixed number of columns}}
  %0 = k31.rms_norm %x weights {gain = @gain} eps 1.0e-5 : tensor<?x?xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?xi64>) {
  // expected-error @below {{tokens is 'tensor<?xi64>', expected i32 [T]}}
  %0 = k31.embed %x weights {embed_tokens = @gain} : (tensor<?xi64>) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?xi32>) {
  // expected-error @below {{weights lack 'embed_tokens'}}
  %0 = k31.embed %x weights {} : (tensor<?xi32>) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32x16xf32>
func.func @f(%x: tensor<?xi32>) {
  // expected-error @below {{weight 'embed_tokens' (@gain) has shape [32, 16], expected [?, 32]}}
  %0 = k31.embed %x weights {embed_tokens = @gain} : (tensor<?xi32>) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{expected one source or more}}
  %0 = k31.attn_res weights {norm = @gain, proj = @gain} eps 1.0e-5 : () -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %y: tensor<?x16xbf16>) {
  // expected-error @below {{a source is 'tensor<?x16xbf16>', but the result is 'tensor<?x32xbf16>'}}
  %0 = k31.attn_res %y, %x weights {norm = @gain, proj = @gain} eps 1.0e-5 : (tensor<?x16xbf16>, tensor<?x32xbf16>) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'proj'}}
  %0 = k31.attn_res %x weights {norm = @gain} eps 1.0e-5 : (tensor<?x32xbf16>) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{expected heads of 1 or more, found 0}}
  %0 = k31.kda %x layer %l weights {q_proj = @w, k_proj = @w, v_proj = @w, q_conv1d = @w, k_conv1d = @w, v_conv1d = @w, f_a_proj = @w, f_b_proj = @w, b_proj = @w, A_log = @w, dt_bias = @w, o_norm = @w, o_proj = @w, g_proj = @w}
    heads 0 x 16 taps 4 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{expected taps of 1 or more, found 0}}
  %0 = k31.kda %x layer %l weights {q_proj = @w, k_proj = @w, v_proj = @w, q_conv1d = @w, k_conv1d = @w, v_conv1d = @w, f_a_proj = @w, f_b_proj = @w, b_proj = @w, A_log = @w, dt_bias = @w, o_norm = @w, o_proj = @w, g_proj = @w}
    heads 2 x 16 taps 0 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'g_proj'}}
  %0 = k31.kda %x layer %l weights {q_proj = @w, k_proj = @w, v_proj = @w, q_conv1d = @w, k_conv1d = @w, v_conv1d = @w, f_a_proj = @w, f_b_proj = @w, b_proj = @w, A_log = @w, dt_bias = @w, o_norm = @w, o_proj = @w}
    heads 2 x 16 taps 4 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'g_b_proj'}}
  %0 = k31.kda %x layer %l weights {q_proj = @w, k_proj = @w, v_proj = @w, q_conv1d = @w, k_conv1d = @w, v_conv1d = @w, f_a_proj = @w, f_b_proj = @w, b_proj = @w, A_log = @w, dt_bias = @w, o_norm = @w, o_proj = @w, g_a_proj = @w}
    heads 2 x 16 taps 4 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights have the unknown key 'g_proj'}}
  %0 = k31.kda %x layer %l weights {q_proj = @w, k_proj = @w, v_proj = @w, q_conv1d = @w, k_conv1d = @w, v_conv1d = @w, f_a_proj = @w, f_b_proj = @w, b_proj = @w, A_log = @w, dt_bias = @w, o_norm = @w, o_proj = @w, g_proj = @w, g_a_proj = @w, g_b_proj = @w}
    heads 2 x 16 taps 4 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weight 'q_proj' (@gain) has shape [32], expected [40, 32]}}
  %0 = k31.kda %x layer %l weights {q_proj = @gain, k_proj = @gain, v_proj = @gain, q_conv1d = @gain, k_conv1d = @gain, v_conv1d = @gain, f_a_proj = @gain, f_b_proj = @gain, b_proj = @gain, A_log = @gain, dt_bias = @gain, o_norm = @gain, o_proj = @gain, g_proj = @gain}
    heads 40 x 1 taps 4 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'q_a_layernorm'}}
  %0 = k31.query_latent %x layer %l weights {q_a_proj = @w} eps 1.0e-5 : (tensor<?x32xbf16>, index) -> tensor<?x16xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'k_norm_bias'}}
  %0 = k31.dsa %x, %x layer %l weights {wq_b = @w, wk = @w, k_norm = @w, weights_proj = @w} heads 2 x 16 top_k 8 eps 1.0e-6 : (tensor<?x32xbf16>, tensor<?x32xbf16>, index) -> tensor<?x8xi32>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{result is 'tensor<?x8xf32>', expected i32 [T, top_k]}}
  %0 = k31.dsa %x, %x layer %l weights {} heads 2 x 16 top_k 8 eps 1.0e-6 : (tensor<?x32xbf16>, tensor<?x32xbf16>, index) -> tensor<?x8xf32>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{result has 4 columns, expected top_k of 8}}
  %0 = k31.dsa %x, %x layer %l weights {} heads 2 x 16 top_k 8 eps 1.0e-6 : (tensor<?x32xbf16>, tensor<?x32xbf16>, index) -> tensor<?x4xi32>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'q_b_proj'}}
  %0 = k31.mla %x query %x layer %l weights {kv_a_proj_with_mqa = @w, kv_a_layernorm = @w, kv_b_proj = @w, o_proj = @w, q_proj = @w}
    heads 2 kv_rank 16 nope 16 rope 4 value 16 eps 1.0e-5 : (tensor<?x32xbf16>, tensor<?x32xbf16>, index) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'q_proj'}}
  %0 = k31.mla %x layer %l weights {kv_a_proj_with_mqa = @w, kv_a_layernorm = @w, kv_b_proj = @w, o_proj = @w}
    heads 2 kv_rank 16 nope 16 rope 4 value 16 eps 1.0e-5 : (tensor<?x32xbf16>, index) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{selected is 'tensor<?x32xbf16>', expected i32 [T, top_k]}}
  %0 = k31.mla %x selected %x layer %l weights {}
    heads 2 kv_rank 16 nope 16 rope 4 value 16 eps 1.0e-5 : (tensor<?x32xbf16>, tensor<?x32xbf16>, index) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{expected rope of 0 or more, found -1}}
  %0 = k31.mla %x layer %l weights {} heads 2 kv_rank 16 nope 16 rope -1 value 16 eps 1.0e-5 : (tensor<?x32xbf16>, index) -> tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{result is 'tensor<?x16xbf16>', but x is 'tensor<?x32xbf16>'}}
  %0 = k31.mla %x layer %l weights {} heads 2 kv_rank 16 nope 16 rope 4 value 16 eps 1.0e-5 : (tensor<?x32xbf16>, index) -> tensor<?x16xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'down_proj'}}
  %0 = k31.mlp %x layer %l weights {gate_proj = @w, up_proj = @w} act <"silu"> : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{expected the activation "silu" or "situ", found "gelu"}}
  %0 = k31.mlp %x layer %l weights {} act <"gelu"> : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{silu takes no beta and no linear_beta}}
  %0 = k31.mlp %x layer %l weights {} act <"silu", beta = 4.0 : f32> : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{situ needs beta}}
  %0 = k31.mlp %x layer %l weights {} act <"situ"> : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'w1'}}
  %0 = k31.latent_moe %x layer %l weights {gate = @w, e_score_correction_bias = @w, shared.gate_proj = @w, shared.up_proj = @w, shared.down_proj = @w}
    act <"silu"> experts 4 top_k 2 latent 0 renormalize true scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'w1_scale'}}
  %0 = k31.latent_moe %x layer %l weights {gate = @w, e_score_correction_bias = @w, shared.gate_proj = @w, shared.up_proj = @w, shared.down_proj = @w, w1_packed = @w}
    act <"silu"> experts 4 top_k 2 latent 0 renormalize true scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights lack 'routed_expert_down_proj'}}
  %0 = k31.latent_moe %x layer %l weights {gate = @w, e_score_correction_bias = @w, shared.gate_proj = @w, shared.up_proj = @w, shared.down_proj = @w, w1 = @w, w2 = @w, w3 = @w}
    act <"silu"> experts 4 top_k 2 latent 16 renormalize true scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weights have the unknown key 'routed_expert_norm'}}
  %0 = k31.latent_moe %x layer %l weights {gate = @w, e_score_correction_bias = @w, shared.gate_proj = @w, shared.up_proj = @w, shared.down_proj = @w, w1 = @w, w2 = @w, w3 = @w, routed_expert_norm = @w}
    act <"silu"> experts 4 top_k 2 latent 0 renormalize true scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{top_k is 5, but there are 4 experts}}
  %0 = k31.latent_moe %x layer %l weights {}
    act <"silu"> experts 4 top_k 5 latent 0 renormalize true scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{expected latent of 0 (none) or more, found -1}}
  %0 = k31.latent_moe %x layer %l weights {}
    act <"silu"> experts 4 top_k 2 latent -1 renormalize true scale 1.0 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %r: tensor<?x1xi32>) {
  // expected-error @below {{rows is 'tensor<?x1xi32>', expected i32 [T]}}
  %0 = k31.head %x at %r weights {lm_head = @gain} : (tensor<?x32xbf16>, tensor<?x1xi32>) -> tensor<?x64xf32>
  return
}

// -----

nn.tensor @gain "g" members [] files [0] offsets [0] : tensor<32xf32>
func.func @f(%x: tensor<?x32xbf16>, %r: tensor<?xi32>) {
  // expected-error @below {{result is 'tensor<?x64xbf16>', expected f32 logits}}
  %0 = k31.head %x at %r weights {lm_head = @gain} : (tensor<?x32xbf16>, tensor<?xi32>) -> tensor<?x64xbf16>
  return
}

// -----

nn.tensor @pp "p" members [] files [0] offsets [0] : tensor<32x32xf32>
nn.tensor @conv "c" members [] files [0] offsets [0] : tensor<32x4xf32>
nn.tensor @p16 "f" members [] files [0] offsets [0] : tensor<16x32xf32>
nn.tensor @b16 "g" members [] files [0] offsets [0] : tensor<32x16xf32>
nn.tensor @beta "b" members [] files [0] offsets [0] : tensor<2x32xf32>
nn.tensor @one "o" members [] files [0] offsets [0] : tensor<1xf32>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weight 'A_log' (@one) has shape [1], expected at least [2]}}
  %0 = k31.kda %x layer %l weights {q_proj = @pp, k_proj = @pp, v_proj = @pp, q_conv1d = @conv, k_conv1d = @conv, v_conv1d = @conv, f_a_proj = @p16, f_b_proj = @b16,
    b_proj = @beta, A_log = @one, dt_bias = @one, o_norm = @one, o_proj = @pp, g_proj = @pp}
    heads 2 x 16 taps 4 eps 1.0e-5 : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gate "g" members [] files [0] offsets [0] : tensor<96x32xbf16>
nn.tensor @up "u" members [] files [0] offsets [0] : tensor<64x32xbf16>
nn.tensor @down "d" members [] files [0] offsets [0] : tensor<32x80xbf16>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weight 'up_proj' (@up) has a width of 64, but 'gate_proj' has one of 96}}
  %0 = k31.mlp %x layer %l weights {gate_proj = @gate, up_proj = @up, down_proj = @down} act <"silu"> : tensor<?x32xbf16>
  return
}

// -----

nn.tensor @gate "g" members [] files [0] offsets [0] : tensor<4x32xbf16>
nn.tensor @bias "b" members [] files [0] offsets [0] : tensor<4xf32>
nn.tensor @up "u" members [] files [0] offsets [0] : tensor<64x32xbf16>
nn.tensor @down "d" members [] files [0] offsets [0] : tensor<32x64xbf16>
nn.tensor @in "i.{}" members [] files [0] offsets [0, 1, 2, 3] : tensor<4x16x32xbf16>
nn.tensor @out "o.{}" members [] files [0] offsets [0, 1, 2, 3] : tensor<4x32x64xbf16>
func.func @f(%x: tensor<?x32xbf16>, %l: index) {
  // expected-error @below {{weight 'w2' (@out) has a width of 64, but 'w1' has one of 16}}
  %0 = k31.latent_moe %x layer %l weights {gate = @gate, e_score_correction_bias = @bias, shared.gate_proj = @up, shared.up_proj = @up,
    shared.down_proj = @down, w1 = @in, w2 = @out, w3 = @in} act <"silu"> experts 4 top_k 2 latent 0 renormalize true scale 1.0 eps 1.0e-5
    : tensor<?x32xbf16>
  return
}
