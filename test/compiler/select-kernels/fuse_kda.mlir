// A KDA layer's convolution, recurrence and gated norm as one op where tokens go one by one.
// RUN: k31-opt %s --select-kernels=target=cpu | FileCheck %s --check-prefixes=BOTH,HOST
// RUN: k31-opt %s --select-kernels=target=sm_90a | FileCheck %s --check-prefixes=BOTH,CUDA
module {
  // It stands where the row op stood, behind what makes the gate. Its Config is those of the three; the row op's input number 1 is
  // the recurrence's result, which nothing in memory holds.
  // BOTH-LABEL: func.func @step
  // BOTH-NOT: attn.short_conv
  // BOTH: [[Z:%.+]] = nn.map ["neg"]
  // BOTH: [[Y:%.+]] = attn.kda_decode ["silu", "gated_norm"] of %arg0, %arg1 window %arg6 decay %arg2 beta %arg3 state %arg7, %arg9 heads 2 rounded bf16, bf16 at 1(%arg4, [[Z]])
  // BOTH-SAME: config = {at = 1 : i64, conv = {channels = 96 : i64, epilogue = 1 : i64, ld_x = 96 : i64}, kda = {chunk = 1 : i64, head_dim = 16 : i64, heads = 2 : i64, ld_beta = 2 : i64, ld_g = 32 : i64},
  // BOTH-SAME: row = {cols = 32 : i64, groups = 2 : i64, inputs = 3 : i64, kind = array<i32: 2>, ld = array<i32: 0, 0, 32>, length = array<i32: 16>, out_ld = array<i32: 32>, out_type = array<i32: 1>, outputs = 1 : i64, phases = 1 : i64, sums = array<i32: 1>, type = array<i32: 0, 1, 1>}
  // CUDA-SAME: rows = 4 : i64}, grid = array<i32: 8, 1, 1>
  // BOTH-SAME: name = "attn.kda_decode"
  // HOST-SAME: tasks = 1 : i64
  // BOTH-SAME: about = "fusion", choice = "attn.short_conv, attn.kda and the row op on its heads", reason = "q, k, v and what the recurrence gives are neither stored nor read back: 2048 bytes and two launches less"
  // BOTH: nn.sum
  // BOTH: activation {
  // BOTH-NEXT: ^bb0(%{{.+}}: f32):
  // BOTH-NEXT: arith.negf
  // BOTH: return [[Y]]
  func.func @step(%x: tensor<4x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<4x32xf32>, %beta: tensor<4x2xf32>, %gain: tensor<16xf32>,
      %gate: tensor<4x32xbf16>, %window: !attn.cache<conv, [3, 96], bf16>, %state: !attn.cache<kda, [2, 16, 16], f32>, %live: tensor<1xi32>, %b: !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16> {
    %c = attn.short_conv %x, %w window %window, %b fused ["silu"] epilogue {
    ^bb0(%s: f32):
      %n = arith.negf %s : f32
      nn.yield %n : f32
    } : (tensor<4x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x96xbf16>
    %q = nn.columns %c[0 : 32] : tensor<4x96xbf16>
    %k = nn.columns %c[32 : 64] : tensor<4x96xbf16>
    %v = nn.columns %c[64 : 96] : tensor<4x96xbf16>
    %o = attn.kda %q, %k, %v decay %g beta %beta state %state, %b heads 2
      : (tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xf32>, tensor<4x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16>
    %z = nn.map ["neg"] live %live (%gate) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    %y = nn.row ["gated_norm"] live %live groups 2 (%gain, %o, %z) {
    ^bb0(%m: f32, %v0: f32, %z0: f32):
      %sq = arith.mulf %v0, %v0 : f32
      %sum = nn.sum %sq : f32
      %r = math.rsqrt %sum : f32
      %n0 = arith.mulf %v0, %r : f32
      %n1 = arith.mulf %n0, %m : f32
      %n2 = arith.mulf %n1, %z0 : f32
      nn.yield %n2 : f32
    } : (tensor<1xi32>, tensor<16xf32>, tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    return %y : tensor<4x32xbf16>
  }

  // Long segments.
  // BOTH-LABEL: func.func @chunks
  // BOTH: attn.short_conv
  // BOTH: attn.kda
  // BOTH-SAME: about = "apart", choice = "attn.kda from attn.short_conv", reason = "segments go by chunks of 16 tokens, and the convolution cuts their rows in another way"
  func.func @chunks(%x: tensor<64x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<64x32xf32>, %beta: tensor<64x2xf32>, %gain: tensor<16xf32>,
      %gate: tensor<64x32xbf16>, %window: !attn.cache<conv, [3, 96], bf16>, %state: !attn.cache<kda, [2, 16, 16], f32>, %live: tensor<1xi32>, %b: !attn.batch<rows = 64, segments = 64, blocks = 4>) -> tensor<64x32xbf16> {
    %c = attn.short_conv %x, %w window %window, %b fused ["silu"] epilogue {
    ^bb0(%s: f32):
      %n = arith.negf %s : f32
      nn.yield %n : f32
    } : (tensor<64x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, !attn.batch<rows = 64, segments = 64, blocks = 4>) -> tensor<64x96xbf16>
    %q = nn.columns %c[0 : 32] : tensor<64x96xbf16>
    %k = nn.columns %c[32 : 64] : tensor<64x96xbf16>
    %v = nn.columns %c[64 : 96] : tensor<64x96xbf16>
    %o = attn.kda %q, %k, %v decay %g beta %beta state %state, %b heads 2 chunk 16
      : (tensor<64x32xbf16>, tensor<64x32xbf16>, tensor<64x32xbf16>, tensor<64x32xf32>, tensor<64x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 64, segments = 64, blocks = 4>) -> tensor<64x32xbf16>
    %z = nn.map ["neg"] live %live (%gate) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %y = nn.row ["gated_norm"] live %live groups 2 (%gain, %o, %z) {
    ^bb0(%m: f32, %v0: f32, %z0: f32):
      %sq = arith.mulf %v0, %v0 : f32
      %sum = nn.sum %sq : f32
      %r = math.rsqrt %sum : f32
      %n0 = arith.mulf %v0, %r : f32
      %n1 = arith.mulf %n0, %m : f32
      %n2 = arith.mulf %n1, %z0 : f32
      nn.yield %n2 : f32
    } : (tensor<1xi32>, tensor<16xf32>, tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
    return %y : tensor<64x32xbf16>
  }

  // A state that no block of a GPU holds.
  // BOTH-LABEL: func.func @wide
  // HOST: attn.kda_decode
  // CUDA: attn.kda %
  // CUDA-SAME: about = "apart", choice = "attn.kda from attn.short_conv", reason = "a head has 256 values, and the registers of a block hold a state of 128 x 128"
  func.func @wide(%x: tensor<4x768xbf16>, %w: tensor<768x4xf32>, %g: tensor<4x256xf32>, %beta: tensor<4x1xf32>, %gain: tensor<256xf32>,
      %gate: tensor<4x256xbf16>, %window: !attn.cache<conv, [3, 768], bf16>, %state: !attn.cache<kda, [1, 256, 256], f32>, %live: tensor<1xi32>, %b: !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x256xbf16> {
    %c = attn.short_conv %x, %w window %window, %b fused ["silu"] epilogue {
    ^bb0(%s: f32):
      %n = arith.negf %s : f32
      nn.yield %n : f32
    } : (tensor<4x768xbf16>, tensor<768x4xf32>, !attn.cache<conv, [3, 768], bf16>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x768xbf16>
    %q = nn.columns %c[0 : 256] : tensor<4x768xbf16>
    %k = nn.columns %c[256 : 512] : tensor<4x768xbf16>
    %v = nn.columns %c[512 : 768] : tensor<4x768xbf16>
    %o = attn.kda %q, %k, %v decay %g beta %beta state %state, %b heads 1
      : (tensor<4x256xbf16>, tensor<4x256xbf16>, tensor<4x256xbf16>, tensor<4x256xf32>, tensor<4x1xf32>, !attn.cache<kda, [1, 256, 256], f32>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x256xbf16>
    %z = nn.map ["neg"] live %live (%gate) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x256xbf16>) -> tensor<4x256xbf16>
    %y = nn.row ["gated_norm"] live %live groups 1 (%gain, %o, %z) {
    ^bb0(%m: f32, %v0: f32, %z0: f32):
      %sq = arith.mulf %v0, %v0 : f32
      %sum = nn.sum %sq : f32
      %r = math.rsqrt %sum : f32
      %n0 = arith.mulf %v0, %r : f32
      %n1 = arith.mulf %n0, %m : f32
      %n2 = arith.mulf %n1, %z0 : f32
      nn.yield %n2 : f32
    } : (tensor<1xi32>, tensor<256xf32>, tensor<4x256xbf16>, tensor<4x256xbf16>) -> tensor<4x256xbf16>
    return %y : tensor<4x256xbf16>
  }

  // Other columns than q, k, v in this order; a norm over other groups; a result that others read: three ops.
  // BOTH-LABEL: func.func @order
  // BOTH-NOT: attn.kda_decode
  func.func @order(%x: tensor<4x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<4x32xf32>, %beta: tensor<4x2xf32>, %gain: tensor<16xf32>,
      %gate: tensor<4x32xbf16>, %window: !attn.cache<conv, [3, 96], bf16>, %state: !attn.cache<kda, [2, 16, 16], f32>, %live: tensor<1xi32>, %b: !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16> {
    %c = attn.short_conv %x, %w window %window, %b fused ["silu"] epilogue {
    ^bb0(%s: f32):
      %n = arith.negf %s : f32
      nn.yield %n : f32
    } : (tensor<4x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x96xbf16>
    %q = nn.columns %c[32 : 64] : tensor<4x96xbf16>
    %k = nn.columns %c[0 : 32] : tensor<4x96xbf16>
    %v = nn.columns %c[64 : 96] : tensor<4x96xbf16>
    %o = attn.kda %q, %k, %v decay %g beta %beta state %state, %b heads 2
      : (tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xf32>, tensor<4x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16>
    %z = nn.map ["neg"] live %live (%gate) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    %y = nn.row ["gated_norm"] live %live groups 2 (%gain, %o, %z) {
    ^bb0(%m: f32, %v0: f32, %z0: f32):
      %sq = arith.mulf %v0, %v0 : f32
      %sum = nn.sum %sq : f32
      %r = math.rsqrt %sum : f32
      %n0 = arith.mulf %v0, %r : f32
      %n1 = arith.mulf %n0, %m : f32
      %n2 = arith.mulf %n1, %z0 : f32
      nn.yield %n2 : f32
    } : (tensor<1xi32>, tensor<16xf32>, tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    return %y : tensor<4x32xbf16>
  }

  // BOTH-LABEL: func.func @groups
  // BOTH-NOT: attn.kda_decode
  func.func @groups(%x: tensor<4x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<4x32xf32>, %beta: tensor<4x2xf32>, %gain: tensor<32xf32>,
      %gate: tensor<4x32xbf16>, %window: !attn.cache<conv, [3, 96], bf16>, %state: !attn.cache<kda, [2, 16, 16], f32>, %live: tensor<1xi32>, %b: !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16> {
    %c = attn.short_conv %x, %w window %window, %b fused ["silu"] epilogue {
    ^bb0(%s: f32):
      %n = arith.negf %s : f32
      nn.yield %n : f32
    } : (tensor<4x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x96xbf16>
    %q = nn.columns %c[0 : 32] : tensor<4x96xbf16>
    %k = nn.columns %c[32 : 64] : tensor<4x96xbf16>
    %v = nn.columns %c[64 : 96] : tensor<4x96xbf16>
    %o = attn.kda %q, %k, %v decay %g beta %beta state %state, %b heads 2
      : (tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xf32>, tensor<4x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16>
    %z = nn.map ["neg"] live %live (%gate) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    %y = nn.row ["gated_norm"] live %live groups 1 (%gain, %o, %z) {
    ^bb0(%m: f32, %v0: f32, %z0: f32):
      %sq = arith.mulf %v0, %v0 : f32
      %sum = nn.sum %sq : f32
      %r = math.rsqrt %sum : f32
      %n0 = arith.mulf %v0, %r : f32
      %n1 = arith.mulf %n0, %m : f32
      %n2 = arith.mulf %n1, %z0 : f32
      nn.yield %n2 : f32
    } : (tensor<1xi32>, tensor<32xf32>, tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    return %y : tensor<4x32xbf16>
  }

  // BOTH-LABEL: func.func @read
  // BOTH-NOT: attn.kda_decode
  func.func @read(%x: tensor<4x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<4x32xf32>, %beta: tensor<4x2xf32>, %gain: tensor<16xf32>,
      %gate: tensor<4x32xbf16>, %window: !attn.cache<conv, [3, 96], bf16>, %state: !attn.cache<kda, [2, 16, 16], f32>, %live: tensor<1xi32>, %b: !attn.batch<rows = 4, segments = 4, blocks = 4>) -> (tensor<4x32xbf16>, tensor<4x32xbf16>) {
    %c = attn.short_conv %x, %w window %window, %b fused ["silu"] epilogue {
    ^bb0(%s: f32):
      %n = arith.negf %s : f32
      nn.yield %n : f32
    } : (tensor<4x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x96xbf16>
    %q = nn.columns %c[0 : 32] : tensor<4x96xbf16>
    %k = nn.columns %c[32 : 64] : tensor<4x96xbf16>
    %v = nn.columns %c[64 : 96] : tensor<4x96xbf16>
    %o = attn.kda %q, %k, %v decay %g beta %beta state %state, %b heads 2
      : (tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xf32>, tensor<4x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16>
    %z = nn.map ["neg"] live %live (%gate) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    %y = nn.row ["gated_norm"] live %live groups 2 (%gain, %o, %z) {
    ^bb0(%m: f32, %v0: f32, %z0: f32):
      %sq = arith.mulf %v0, %v0 : f32
      %sum = nn.sum %sq : f32
      %r = math.rsqrt %sum : f32
      %n0 = arith.mulf %v0, %r : f32
      %n1 = arith.mulf %n0, %m : f32
      %n2 = arith.mulf %n1, %z0 : f32
      nn.yield %n2 : f32
    } : (tensor<1xi32>, tensor<16xf32>, tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    return %y, %o : tensor<4x32xbf16>, tensor<4x32xbf16>
  }

  // BOTH-LABEL: func.func @views
  // BOTH-NOT: attn.kda_decode
  func.func @views(%x: tensor<4x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<4x32xf32>, %beta: tensor<4x2xf32>, %gain: tensor<16xf32>,
      %gate: tensor<4x32xbf16>, %window: !attn.cache<conv, [3, 96], bf16>, %state: !attn.cache<kda, [2, 16, 16], f32>, %live: tensor<1xi32>, %b: !attn.batch<rows = 4, segments = 4, blocks = 4>) -> (tensor<4x32xbf16>, tensor<4x32xbf16>) {
    %c = attn.short_conv %x, %w window %window, %b fused ["silu"] epilogue {
    ^bb0(%s: f32):
      %n = arith.negf %s : f32
      nn.yield %n : f32
    } : (tensor<4x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x96xbf16>
    %q = nn.columns %c[0 : 32] : tensor<4x96xbf16>
    %k = nn.columns %c[32 : 64] : tensor<4x96xbf16>
    %v = nn.columns %c[64 : 96] : tensor<4x96xbf16>
    %o = attn.kda %q, %k, %v decay %g beta %beta state %state, %b heads 2
      : (tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xf32>, tensor<4x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 4, segments = 4, blocks = 4>) -> tensor<4x32xbf16>
    %z = nn.map ["neg"] live %live (%gate) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      nn.yield %n : f32
    } : (tensor<1xi32>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    %y = nn.row ["gated_norm"] live %live groups 2 (%gain, %o, %z) {
    ^bb0(%m: f32, %v0: f32, %z0: f32):
      %sq = arith.mulf %v0, %v0 : f32
      %sum = nn.sum %sq : f32
      %r = math.rsqrt %sum : f32
      %n0 = arith.mulf %v0, %r : f32
      %n1 = arith.mulf %n0, %m : f32
      %n2 = arith.mulf %n1, %z0 : f32
      nn.yield %n2 : f32
    } : (tensor<1xi32>, tensor<16xf32>, tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
    return %y, %v : tensor<4x32xbf16>, tensor<4x32xbf16>
  }
}
