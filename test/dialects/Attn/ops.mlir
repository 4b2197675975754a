// Every op and type of attn: what is printed parses again and prints the same.
// RUN: k31-opt %s | FileCheck %s
// RUN: k31-opt %s | k31-opt | FileCheck %s
// RUN: k31-opt --mlir-print-op-generic %s | k31-opt | FileCheck %s

// CHECK: attn.pool @latent members [3, 7] : !attn.cache<latent, [256, 20], bf16>
attn.pool @latent members [3, 7] : !attn.cache<latent, [256, 20], bf16>
// CHECK: attn.pool @keys members [3] : !attn.cache<index, [256, 16], bf16, paged>
attn.pool @keys members [3] : !attn.cache<index, [256, 16], bf16, paged>
// CHECK: attn.pool @latent_codes members [3] : !attn.cache<latent, [256, 20], f8E4M3FN codes 16>
attn.pool @latent_codes members [3] : !attn.cache<latent, [256, 20], f8E4M3FN codes 16>
// CHECK: attn.pool @key_codes members [3] : !attn.cache<index, [256, 16], i8, paged>
attn.pool @key_codes members [3] : !attn.cache<index, [256, 16], i8, paged>
attn.pool @state members [0, 1] : !attn.cache<kda, [2, 16, 16], f32>
attn.pool @window members [0, 1] : !attn.cache<conv, [3, 32], bf16>

// CHECK-LABEL: func.func @kda
func.func @kda(%x: tensor<8x32xbf16>, %w: tensor<32x4xf32>, %g: tensor<8x32xf32>, %beta: tensor<8x2xf32>, %layer: index,
               %batch: !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16> {
  // CHECK: [[W:%.+]] = attn.cache @window[%{{.+}}] : <conv, [3, 32], bf16>
  %window = attn.cache @window[%layer] : !attn.cache<conv, [3, 32], bf16>
  %state = attn.cache @state[%layer] : !attn.cache<kda, [2, 16, 16], f32>
  // CHECK: attn.short_conv %{{.+}}, %{{.+}} window [[W]], %{{[^ ]+}} : (tensor<8x32xbf16>, tensor<32x4xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  %plain = attn.short_conv %x, %w window %window, %batch
    : (tensor<8x32xbf16>, tensor<32x4xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  // CHECK:      attn.short_conv %{{.+}}, %{{.+}} window [[W]], %{{.+}} fused ["relu"] epilogue {
  // CHECK-NEXT: ^bb0(%{{.+}}: f32):
  // CHECK:        nn.yield
  %q = attn.short_conv %x, %w window %window, %batch fused ["relu"] epilogue {
  ^bb0(%a: f32):
    %c = arith.constant 0.0 : f32
    %m = arith.maximumf %a, %c : f32
    nn.yield %m : f32
  } : (tensor<8x32xbf16>, tensor<32x4xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  // CHECK: attn.kda %{{.+}}, %{{.+}}, %{{.+}} decay %{{.+}} beta %{{.+}} state %{{.+}}, %{{.+}} heads 2 chunk 16 : (
  %o = attn.kda %q, %q, %q decay %g beta %beta state %state, %batch heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>,
       !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  // CHECK: attn.kda {{.+}} heads 2 : (
  %p = attn.kda %o, %o, %o decay %g beta %beta state %state, %batch heads 2
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>,
       !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return %p : tensor<8x32xbf16>
}

// CHECK-LABEL: func.func @kda_decode
func.func @kda_decode(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %beta: tensor<8x2xf32>, %gain: tensor<16xf32>,
                      %window: !attn.cache<conv, [3, 96], bf16>, %state: !attn.cache<kda, [2, 16, 16], f32>,
                      %batch: !attn.batch<rows = 8, segments = 8, blocks = 4>) -> (tensor<8x32xbf16>, tensor<8x32xf32>) {
  // CHECK: attn.kda_decode ["silu", "norm"] of %{{.+}}, %{{.+}} window %{{.+}} decay %{{.+}} beta %{{.+}} state %{{.+}}, %{{.+}} heads 2 rounded bf16, f32 at 1(%{{.+}}) {
  // CHECK-NEXT: ^bb0(%{{.+}}: f32, %{{.+}}: f32):
  // CHECK: nn.sum
  // CHECK: } activation {
  // CHECK-NEXT: ^bb0(%{{.+}}: f32):
  // CHECK: } : (tensor<8x96xbf16>, tensor<96x4xf32>, {{.+}}) -> (tensor<8x32xbf16>, tensor<8x32xf32>)
  %y:2 = attn.kda_decode ["silu", "norm"] of %x, %w window %window decay %g beta %beta state %state, %batch heads 2 rounded bf16, f32 at 1 (%gain) {
  ^bb0(%m: f32, %o: f32):
    %s = nn.sum %o : f32
    %v = arith.mulf %s, %m : f32
    nn.yield %v, %o : f32, f32
  } activation {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    nn.yield %n : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>,
       !attn.batch<rows = 8, segments = 8, blocks = 4>, tensor<16xf32>) -> (tensor<8x32xbf16>, tensor<8x32xf32>)
  // Without an activation and without further operands.
  // CHECK: attn.kda_decode {{.+}} at 0() {
  // CHECK: nn.yield
  // CHECK-NEXT: } : (
  %z = attn.kda_decode ["sum"] of %x, %w window %window decay %g beta %beta state %state, %batch heads 2 rounded f32, bf16 at 0 () {
  ^bb0(%o: f32):
    %s = nn.sum %o : f32
    nn.yield %s : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>,
       !attn.batch<rows = 8, segments = 8, blocks = 4>) -> tensor<8x32xf32>
  return %y#0, %z : tensor<8x32xbf16>, tensor<8x32xf32>
}

// CHECK-LABEL: func.func @mla
func.func @mla(%c: tensor<8x16xbf16>, %q: tensor<8x32xf32>, %shared: tensor<8x24xbf16>, %qi: tensor<8x32xbf16>, %w: tensor<8x2xf32>, %layer: index,
               %batch: !attn.batch<rows = 8, segments = 2, blocks = 4>) -> (tensor<8x32xf32>, tensor<8x2xf32>) {
  %latent = attn.cache @latent[%layer] : !attn.cache<latent, [256, 20], bf16>
  %keys = attn.cache @keys[%layer] : !attn.cache<index, [256, 16], bf16, paged>
  // CHECK: attn.append %{{.+}} to %{{.+}} at 0, %{{.+}} : tensor<8x16xbf16>, <latent, [256, 20], bf16>, <rows = 8, segments = 2, blocks = 4>
  attn.append %c to %latent at 0, %batch : tensor<8x16xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  // CHECK: [[IDS:%.+]] = attn.index_select %{{.+}} weights %{{.+}} keys %{{.+}}, %{{.+}} heads 2 top_k 6 : tensor<8x32xbf16>, tensor<8x2xf32>, <index, [256, 16], bf16, paged>, <rows = 8, segments = 2, blocks = 4>
  %ids = attn.index_select %qi weights %w keys %keys, %batch heads 2 top_k 6
    : tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<index, [256, 16], bf16, paged>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  // CHECK: attn.attend %{{.+}}, %{{.+}} cache %{{.+}}, %{{.+}} selected [[IDS]] heads 2 shared_begin 8 scale 2.500000e-01 : {{.+}} -> tensor<8x32xf32>
  %o = attn.attend %q, %shared cache %latent, %batch selected %ids heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<8x6xi32>)
    -> tensor<8x32xf32>
  // CHECK: attn.attend %{{[^ ]+}}, %{{[^ ]+}} cache %{{[^ ]+}}, %{{[^ ]+}} heads 2 {{.+}} -> (tensor<8x32xf32>, tensor<8x2xf32>)
  %p, %lse = attn.attend %o, %shared cache %latent, %batch heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>)
    -> (tensor<8x32xf32>, tensor<8x2xf32>)
  return %p, %lse : tensor<8x32xf32>, tensor<8x2xf32>
}

// CHECK-LABEL: func.func @rows_of_a_rank
func.func @rows_of_a_rank(%batch: !attn.batch<rows = 8, segments = 2, blocks = 4>, %c: tensor<1xi32>) -> !attn.batch<rows = 4, segments = 2, blocks = 4> {
  // CHECK: attn.batch_rows %{{.+}} at %{{.+}} : (!attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<1xi32>) -> (tensor<4xi32>, tensor<2x6xi32>, tensor<4xi32>)
  %counts, %segments, %rows = attn.batch_rows %batch at %c
    : (!attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<1xi32>) -> (tensor<4xi32>, tensor<2x6xi32>, tensor<4xi32>)
  // CHECK: attn.batch_of %{{.+}}, %{{.+}}, %{{.+}} table %{{.+}} : (tensor<4xi32>, tensor<2x6xi32>, tensor<4xi32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> !attn.batch<rows = 4, segments = 2, blocks = 4>
  %own = attn.batch_of %counts, %segments, %rows table %batch
    : (tensor<4xi32>, tensor<2x6xi32>, tensor<4xi32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> !attn.batch<rows = 4, segments = 2, blocks = 4>
  return %own : !attn.batch<rows = 4, segments = 2, blocks = 4>
}
