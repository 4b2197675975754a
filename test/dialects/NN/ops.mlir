// Every op of nn: what is printed parses again and prints the same.
// RUN: k31-opt %s | FileCheck %s
// RUN: k31-opt %s | k31-opt | FileCheck %s
// RUN: k31-opt --mlir-print-op-generic %s | k31-opt | FileCheck %s

// CHECK: nn.tensor @q "layers.{}.q.weight" members [0, 3] files [0] offsets [64, 4096] : tensor<64x32xbf16>
nn.tensor @q "layers.{}.q.weight" members [0, 3] files [0] offsets [64, 4096] : tensor<64x32xbf16>
nn.tensor @k "layers.{}.k.weight" members [0, 3] files [0, 1] offsets [64, 4096] : tensor<64x32xbf16>
nn.tensor @conv "layers.{}.conv" members [0, 3] files [0] offsets [64, 4096] : tensor<64x1x4xf32>
nn.tensor @A_log "layers.{}.A_log" members [0, 3] files [0] offsets [64, 4096] : tensor<1x1x8x1xf32>
// CHECK: nn.tensor @w1 "layers.{}.experts.{}.w1" members [2] files [0] offsets [0, 512] : tensor<2x32x32xf4E2M1FN>
nn.tensor @w1 "layers.{}.experts.{}.w1" members [2] files [0] offsets [0, 512] : tensor<2x32x32xf4E2M1FN>
nn.tensor @w3 "layers.{}.experts.{}.w3" members [2] files [0] offsets [0, 512] : tensor<2x32x32xf4E2M1FN>
// CHECK: nn.tensor @embed "embed.weight" members [] files [0] offsets [64] : tensor<96x32xbf16>
nn.tensor @embed "embed.weight" members [] files [0] offsets [64] : tensor<96x32xbf16>

// CHECK: nn.stack @qk [@q, @k] rows [64, 48] : tensor<112x32xbf16>
nn.stack @qk [@q, @k] rows [64, 48] : tensor<112x32xbf16>
// CHECK: nn.stack @gate_up [@q, @k] rows [64, 64] interleave 16 : tensor<128x32xbf16>
nn.stack @gate_up [@q, @k] rows [64, 64] interleave 16 : tensor<128x32xbf16>
// CHECK: nn.stack @some.heads [@q] rows [32] shard tp rows : tensor<32x32xbf16>
nn.stack @some.heads [@q] rows [32] shard tp rows : tensor<32x32xbf16>
// CHECK: nn.stack @part [@q] rows [64] shard tp columns : tensor<64x16xbf16>
nn.stack @part [@q] rows [64] shard tp columns : tensor<64x16xbf16>
// CHECK: nn.merged_stack @merged.qk [@qk, @some.heads] : tensor<144x32xbf16>
nn.merged_stack @merged.qk [@qk, @some.heads] : tensor<144x32xbf16>
nn.stack @conv.all [@conv, @conv] rows [64, 64] : tensor<128x4xf32>
nn.stack @decay [@A_log] rows [4] : tensor<4xf32>
nn.stack @w13 [@w1, @w3] rows [32, 32] interleave 16 : tensor<2x64x32xf4E2M1FN>
nn.stack @table [@embed] rows [96] : tensor<96x32xbf16>

// CHECK-LABEL: func.func @dense
func.func @dense(%ids: tensor<8xi32>, %live: tensor<1xi32>, %layer: index, %gain: tensor<32xf32>) -> tensor<8x32xbf16> {
  // CHECK: [[TABLE:%.+]] = nn.weight @table : tensor<96x32xbf16>
  %table = nn.weight @table : tensor<96x32xbf16>
  // CHECK: [[W:%.+]] = nn.weight @gate_up[%{{.+}}] : tensor<128x32xbf16>
  %w = nn.weight @gate_up[%layer] : tensor<128x32xbf16>
  // CHECK: [[X:%.+]] = nn.embed %{{.+}} in [[TABLE]] live %{{.+}} : (tensor<8xi32>, tensor<96x32xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  %x = nn.embed %ids in %table live %live : (tensor<8xi32>, tensor<96x32xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  // CHECK: nn.linear [[X]], [[W]] live %{{[^ ]+}} : (tensor<8x32xbf16>, tensor<128x32xbf16>, tensor<1xi32>) -> tensor<8x128xbf16>
  %plain = nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<128x32xbf16>, tensor<1xi32>) -> tensor<8x128xbf16>
  // CHECK: [[M:%.+]] = nn.weight @merged.qk[%{{.+}}] : tensor<144x32xbf16>
  // CHECK: nn.linear [[X]], [[M]] live %{{[^ ]+}} : (tensor<8x32xbf16>, tensor<144x32xbf16>, tensor<1xi32>) -> (tensor<8x112xbf16>, tensor<8x32xf32>)
  %merged = nn.weight @merged.qk[%layer] : tensor<144x32xbf16>
  %qk, %heads = nn.linear %x, %merged live %live : (tensor<8x32xbf16>, tensor<144x32xbf16>, tensor<1xi32>) -> (tensor<8x112xbf16>, tensor<8x32xf32>)
  // CHECK:      [[GU:%.+]]:2 = nn.linear [[X]], [[W]] live %{{.+}} extras %{{.+}}, %{{.+}} pair fused ["glu", "add"] epilogue {
  // CHECK-NEXT: ^bb0(%{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32):
  // CHECK:        nn.yield %{{.+}}, %{{.+}} : f32, f32
  // CHECK-NEXT: } : (tensor<8x32xbf16>, tensor<128x32xbf16>, tensor<1xi32>, tensor<32xf32>, tensor<8x1xbf16>) -> (tensor<8x64xbf16>, tensor<8x64xf32>)
  %one = nn.columns %x[0:1] : tensor<8x32xbf16>
  %gu:2 = nn.linear %x, %w live %live extras %gain, %one pair fused ["glu", "add"] epilogue {
  ^bb0(%g: f32, %u: f32, %b: f32, %r: f32):
    %p = arith.mulf %g, %u : f32
    %s = arith.addf %p, %b : f32
    nn.yield %p, %s : f32, f32
  } : (tensor<8x32xbf16>, tensor<128x32xbf16>, tensor<1xi32>, tensor<32xf32>, tensor<8x1xbf16>) -> (tensor<8x64xbf16>, tensor<8x64xf32>)
  // CHECK: [[HALF:%.+]] = nn.columns [[GU]]#0[32 : 64] : tensor<8x64xbf16>
  %half = nn.columns %gu#0[32:64] : tensor<8x64xbf16>
  // CHECK:      nn.map ["add"] live %{{.+}}([[X]], [[HALF]]) {
  // CHECK-NEXT: ^bb0(%{{.+}}: f32, %{{.+}}: f32):
  %y = nn.map ["add"] live %live(%x, %half) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<8x32xbf16>, tensor<8x32xbf16>) -> tensor<8x32xbf16>
  // CHECK: nn.map ["zero"] live %{{.+}} {
  %zero = nn.map ["zero"] live %live {
    %c = arith.constant 0.0 : f32
    nn.yield %c : f32
  } : (tensor<1xi32>) -> tensor<8x32xf32>
  // CHECK:      nn.row ["rms_norm"] live %{{.+}}(%{{.+}}, %{{.+}}) {
  // CHECK:        nn.sum %{{.+}} : f32
  %n = nn.row ["rms_norm"] live %live(%y, %gain) {
  ^bb0(%a: f32, %g: f32):
    %q = arith.mulf %a, %a : f32
    %s = nn.sum %q : f32
    %r = math.rsqrt %s : f32
    %o = arith.mulf %a, %r : f32
    nn.yield %o : f32
  } : (tensor<1xi32>, tensor<8x32xbf16>, tensor<32xf32>) -> tensor<8x32xbf16>
  // CHECK: nn.row ["heads"] live %{{.+}} groups 4(%{{.+}}) {
  %h = nn.row ["heads"] live %live groups 4 (%n) {
  ^bb0(%a: f32):
    %s = nn.sum %a : f32
    nn.yield %s : f32
  } : (tensor<1xi32>, tensor<8x32xbf16>) -> tensor<8x32xbf16>
  return %h : tensor<8x32xbf16>
}

// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<8x48xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) -> (tensor<8x64xf32>, tensor<8x8xbf16>) {
  // CHECK: nn.head_linear %{{.+}}, %{{.+}} live %{{.+}} heads 2 rows [0, 16] transposed : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf32>
  %a = nn.head_linear %x, %w live %live heads 2 rows [0, 16] transposed
    : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf32>
  // CHECK: nn.head_linear %{{.+}}, %{{.+}} live %{{.+}} heads 2 rows [28, 4] : (tensor<8x64xf32>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x8xbf16>
  %b = nn.head_linear %a, %w live %live heads 2 rows [28, 4] : (tensor<8x64xf32>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x8xbf16>
  return %a, %b : tensor<8x64xf32>, tensor<8x8xbf16>
}

// CHECK-LABEL: func.func @head
func.func @head(%x: tensor<8x32xf32>, %rows: tensor<4xi32>, %live: tensor<1xi32>, %params: tensor<4x24xui8>, %mask: tensor<4x32xui8>)
    -> (tensor<4xi32>, tensor<4xi32>) {
  // CHECK: [[L:%.+]] = nn.gather %{{.+}} at %{{.+}} live %{{.+}} : (tensor<8x32xf32>, tensor<4xi32>, tensor<1xi32>) -> tensor<4x32xf32>
  %l = nn.gather %x at %rows live %live : (tensor<8x32xf32>, tensor<4xi32>, tensor<1xi32>) -> tensor<4x32xf32>
  // CHECK: nn.sample [[L]] params %{{[^ ]+}} live %{{[^ ]+}} : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<1xi32>) -> tensor<4xi32>
  %a = nn.sample %l params %params live %live : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<1xi32>) -> tensor<4xi32>
  // CHECK: nn.sample [[L]] params %{{.+}} mask %{{.+}} bias [[L]] live
  %b = nn.sample %l params %params mask %mask bias %l live %live
    : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<4x32xui8>, tensor<4x32xf32>, tensor<1xi32>) -> tensor<4xi32>
  return %a, %b : tensor<4xi32>, tensor<4xi32>
}
