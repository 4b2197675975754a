// RUN: k31-opt %s -convert-ops-to-plan | FileCheck %s
// RUN: k31-opt %s -convert-ops-to-plan -schedule -assign-memory | FileCheck %s --check-prefix=MEMORY

// CHECK: plan.key "k31c {{[0-9.]+}}+{{[0-9a-f]+}}" target "cpu" options {activations = "bf16", cache_tokens = "1000",
// CHECK-SAME: checkpoint "00112233445566778899aabbccddeeff" digest "{{[0-9a-f]+}}"
// CHECK: plan.mesh tp 1 dp 1 ep 1 pp 1 node 1
// CHECK: plan.model "kimi-k3.1" layers 0 to 3 of 3 hidden 16 vocab 32 max_context 512 max_batch 2 eos [7] activations "bf16"
// CHECK: plan.file "model.safetensors" bytes 100000
// CHECK: plan.arena @weights weights bytes 2560
// CHECK: plan.arena @cache cache bytes 32768
// CHECK: plan.arena @state state bytes 256

// Two parts share a stack's members, 24 rows of 32 bytes each; what no op uses is not loaded.
// CHECK-NOT: model.unused
// CHECK: plan.weights "model.embed_tokens.weight" members [] "BF16" [32, 16] in @weights at 0
// CHECK: plan.weights "model.layers.{}.q.weight" members [0, 2] "BF16" [16, 16] in @weights at 1024 stride 768 rows [0, 16] of 32 bytes [0, 32] pitch 32 group [16, 16, 0] files [0, 0] offsets [2000, 3000]
// CHECK: plan.weights "model.layers.{}.k.weight" members [0, 2] "BF16" [8, 16] in @weights at 1024 stride 768 rows [0, 8] of 32 bytes [0, 32] pitch 32 group [8, 8, 16] files [0, 0] offsets [4000, 5000]
// CHECK-NOT: model.unused
// CHECK: plan.state block_tokens 256 blocks 4 slots 2
// CHECK: plan.state_member latent layer 0 in @cache at 0 unit 4096 units 4
// CHECK: plan.state_member latent layer 2 in @cache at 16384 unit 4096 units 4
// CHECK: plan.state_member conv layer 2 in @state at 0 unit 48 units 2

// A note is there once, for the launches of both layers.
// CHECK: plan.note @note.0 "kernel" "3 tasks" because "small"
// CHECK-NOT: plan.note

// CHECK: plan.kernel @nn.embed.0 "nn.embed" {{.*}} spec {config = {}, name = "nn.embed"} args [tensor<?xi32>, tensor<?x16xbf16>, tensor<?xi32>, tensor<?x16xbf16>]
// CHECK: plan.kernel @nn.linear.0 "nn.linear" {{.*}} spec {config = {n = 24 : i64, rows = 2 : i64}
// A view has the type of its columns, a pool rows of one block, a batch four arguments of i32.
// CHECK: plan.kernel @attn.append.0 {{.*}} args [tensor<?x8xbf16>, tensor<?x2048xbf16>, tensor<?xi32>, tensor<?x6xi32>, tensor<?xi32>, tensor<?x2xi32>]
// CHECK: plan.kernel @nn.row.0 "nn.row add" {{.*}} {
// CHECK: arith.addf
// CHECK-NOT: plan.kernel

// CHECK: plan.entry @decode_b2 decode rows 2 segments 2 logit_rows 2
// CHECK: %[[TOKENS:.*]] = plan.alloc @io : tensor<2xi32>
// CHECK: plan.input "tokens" %[[TOKENS]]
// CHECK: %[[COUNTS:.*]] = plan.alloc @io : tensor<4xi32>
// CHECK: plan.input "counts" %[[COUNTS]]
// CHECK: plan.input "segments" %[[SEGMENTS:.*]] : tensor<2x6xi32>
// CHECK: plan.input "row_segment" %[[ROWS:.*]] : tensor<2xi32>
// CHECK: plan.input "block_table" %[[TABLE:.*]] : tensor<2x2xi32>
// CHECK: %[[LIVE:.*]] = plan.view %[[COUNTS]] at 0 : tensor<4xi32> -> tensor<4xui8>
// CHECK: plan.view %[[COUNTS]] at 8 : tensor<4xi32> -> tensor<4xui8>
// CHECK: %[[OUT:.*]] = plan.alloc @io : tensor<2x16xbf16>
// CHECK: plan.launch @nn.embed.0 on 0 grid [1, 1, 1] (%[[TOKENS]] read : tensor<2xi32>, {{.*}}, %[[LIVE]] read : {{.*}}, %[[X:.*]] write : tensor<2x16xbf16>) "embed_tokens"
// CHECK: %[[W0:.*]] = plan.slice @weights at 1024
// CHECK: plan.launch @nn.linear.0 on 0 grid [3, 1, 1] (%[[X]] read : {{.*}}, %[[W0]] read : {{.*}}, %[[Y:.*]] write : tensor<2x24xbf16>) "layers.0.self_attn.qk" {plan.notes = [@note.0]}
// Columns are views from their first value to the last row's end: 48 + 32 and 48 + 16 bytes.
// CHECK: %[[Q:.*]] = plan.view %[[Y]] at 0 : tensor<2x24xbf16> -> tensor<80xui8>
// CHECK: %[[K:.*]] = plan.view %[[Y]] at 32 : tensor<2x24xbf16> -> tensor<64xui8>
// CHECK: %[[C0:.*]] = plan.slice @cache at 0 : tensor<4x256x8xbf16>
// A batch is four pointers, an append writes to its cache.
// CHECK: plan.launch @attn.append.0 {{.*}} (%[[K]] read : {{.*}}, %[[C0]] write : tensor<4x256x8xbf16>, %[[COUNTS]] read : {{.*}}, %[[SEGMENTS]] read : {{.*}}, %[[ROWS]] read : {{.*}}, %[[TABLE]] read : {{.*}}) "layers.0.self_attn.append"
// CHECK: plan.launch @nn.row.0 {{.*}} (%[[LIVE]] read : {{.*}}, %[[Q]] read : {{.*}}, %[[X]] read : {{.*}}, %[[Z:.*]] write : tensor<2x16xbf16>, %{{.*}} write : tensor<100xui8>) "layers.0.residual"
// CHECK: plan.slice @weights at 1792
// CHECK: plan.launch @nn.linear.0 {{.*}} (%[[Z]] read {{.*}}"layers.2.self_attn.qk" {plan.notes = [@note.0]}
// CHECK: plan.slice @cache at 16384
// The last result is written to the output, not copied there.
// CHECK: plan.launch @nn.row.0 {{.*}} %[[OUT]] write : tensor<2x16xbf16>, %{{.*}} write : tensor<100xui8>) "layers.2.residual"
// CHECK-NOT: plan.copy
// CHECK: plan.output "hidden" %[[OUT]]

// MEMORY: plan.arena @activations activations bytes 768
// MEMORY: plan.arena @io io bytes 1536
// MEMORY: plan.arena @workspace workspace bytes 256
// MEMORY-NOT: plan.alloc
// MEMORY-NOT: plan.view

// One linear a layer, called for layers 0 and 2; kernels are shared, weights and caches are those of the layer.
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 3 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>, prefix = "model."},
  k31.checkpoint = {hash = "00112233445566778899aabbccddeeff", files = [{name = "model.safetensors", bytes = 100000 : i64}]},
  k31.options = {activations = "bf16", max_context = 512 : i64, max_batch = 2 : i64, prefill_chunk = 64 : i64, cache_tokens = 1000 : i64,
                 logit_rows = 4 : i64, target = "cpu"},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64}} {

  nn.tensor @embed "model.embed_tokens.weight" members [] files [0] offsets [64] : tensor<32x16xbf16>
  nn.tensor @q "model.layers.{}.q.weight" members [0, 2] files [0] offsets [2000, 3000] : tensor<16x16xbf16>
  nn.tensor @k "model.layers.{}.k.weight" members [0, 2] files [0] offsets [4000, 5000] : tensor<8x16xbf16>
  nn.tensor @unused "model.unused" members [] files [0] offsets [9000] : tensor<4xf32>
  nn.stack @embed.s [@embed] rows [32] : tensor<32x16xbf16>
  nn.stack @qk [@q, @k] rows [16, 8] : tensor<24x16xbf16>
  nn.stack @unused.s [@unused] rows [4] : tensor<4xf32>
  attn.pool @latent members [0, 2] : !attn.cache<latent, [256, 8], bf16>
  attn.pool @window members [2] : !attn.cache<conv, [3, 8], bf16>

  func.func private @decode_b2.body.a(%layer: index, %x: tensor<2x16xbf16>, %live: tensor<1xi32>,
                                      %batch: !attn.batch<rows = 2, segments = 2, blocks = 2>) -> tensor<2x16xbf16> {
    %w = nn.weight @qk[%layer] : tensor<24x16xbf16>
    %y = nn.linear %x, %w live %live attributes {k31.kernel = {name = "nn.linear", config = {rows = 2 : i64, n = 24 : i64}, tasks = 3 : i64, workspace = 0 : i64}, k31.notes = [{about = "kernel", choice = "3 tasks", reason = "small"}]}
        : (tensor<2x16xbf16>, tensor<24x16xbf16>, tensor<1xi32>) -> tensor<2x24xbf16> loc("self_attn.qk")
    %q = nn.columns %y[0:16] : tensor<2x24xbf16>
    %k = nn.columns %y[16:24] : tensor<2x24xbf16>
    %cache = attn.cache @latent[%layer] : !attn.cache<latent, [256, 8], bf16>
    attn.append %k to %cache at 0, %batch {k31.kernel = {name = "attn.append", config = {cols = 8 : i64}, tasks = 1 : i64, workspace = 0 : i64}}
        : tensor<2x8xbf16>, !attn.cache<latent, [256, 8], bf16>, !attn.batch<rows = 2, segments = 2, blocks = 2> loc("self_attn.append")
    %z = nn.map ["add"] live %live (%q, %x) attributes {k31.kernel = {name = "nn.row", config = {cols = 16 : i64}, tasks = 1 : i64, workspace = 100 : i64}} {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      nn.yield %s : f32
    } : (tensor<1xi32>, tensor<2x16xbf16>, tensor<2x16xbf16>) -> tensor<2x16xbf16> loc("residual")
    return %z : tensor<2x16xbf16>
  }

  func.func @decode_b2(%tokens: tensor<2xi32> {k31.input = "tokens"}, %live: tensor<1xi32> {k31.input = "counts", k31.offset = 0 : i64},
                       %lrows: tensor<1xi32> {k31.input = "counts", k31.offset = 8 : i64},
                       %batch: !attn.batch<rows = 2, segments = 2, blocks = 2> {k31.input = "batch"})
      -> (tensor<2x16xbf16> {k31.output = "hidden"}) attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 2 : i64, logit_rows = 2 : i64}} {
    %table = nn.weight @embed.s : tensor<32x16xbf16>
    %x = nn.embed %tokens in %table live %live {k31.kernel = {name = "nn.embed", config = {}, tasks = 1 : i64, workspace = 0 : i64}}
        : (tensor<2xi32>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<2x16xbf16> loc("embed_tokens")
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %a = func.call @decode_b2.body.a(%c0, %x, %live, %batch) : (index, tensor<2x16xbf16>, tensor<1xi32>, !attn.batch<rows = 2, segments = 2, blocks = 2>) -> tensor<2x16xbf16>
    %b = func.call @decode_b2.body.a(%c2, %a, %live, %batch) : (index, tensor<2x16xbf16>, tensor<1xi32>, !attn.batch<rows = 2, segments = 2, blocks = 2>) -> tensor<2x16xbf16>
    return %b : tensor<2x16xbf16>
  }
}
