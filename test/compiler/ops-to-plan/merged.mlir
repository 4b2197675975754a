// RUN: k31-opt %s -convert-ops-to-plan | FileCheck %s
// RUN: k31-opt %s -convert-ops-to-plan -schedule -assign-memory -o /dev/null

// Members of a merged stack have the rows of all its stacks: 16 of q, half of g's 32, which the ranks share out, and all 8 of f, 32
// bytes each: 1280 bytes, of which k31 keeps 256 bytes apart. Each stack keeps its own shard.
// CHECK: plan.arena @weights weights bytes 3072
// CHECK: plan.weights "model.layers.{}.q.weight" members [0, 2] "BF16" [16, 16] in @weights at 0 stride 1280 rows [0, 16] of 32 bytes [0, 32] pitch 32 group [16, 16, 0]
// CHECK: plan.weights "model.layers.{}.g.weight" members [0, 2] "BF16" [32, 16] in @weights at 0 stride 1280 rows [0, 16] of 32 bytes [0, 32] pitch 32 group [16, 16, 16] {{.*}}shard tp rows
// CHECK: plan.weights "model.layers.{}.f.weight" members [0, 2] "BF16" [8, 16] in @weights at 0 stride 1280 rows [0, 8] of 32 bytes [0, 32] pitch 32 group [8, 8, 32]
// CHECK: plan.weights "model.other.weight" members [] "BF16" [16, 16] in @weights at 2560

// One launch writes three buffers; another entry reads one of the stacks alone, 16 rows behind the begin of the member.
// CHECK: plan.entry @decode_b1
// CHECK: %[[W:.*]] = plan.slice @weights at 1280 : tensor<40x16xbf16>
// CHECK: plan.launch @nn.linear.0 on 0 grid [3, 1, 1] (%{{.*}} read : {{.*}}, %[[W]] read : {{.*}}, %{{.*}} read : {{.*}}, %{{.*}} write : tensor<1x16xbf16>, %{{.*}} write : tensor<1x16xbf16>, %{{.*}} write : tensor<1x8xf32>) "layers.2.q+g+f"
// CHECK: plan.entry @prefill_t4
// CHECK: plan.slice @weights at 1792 : tensor<16x16xbf16>
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 3 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.checkpoint = {hash = "00", files = [{name = "model.safetensors", bytes = 100000 : i64}]},
  k31.mesh = {tp = 2 : i64, dp = 1 : i64, ep = 2 : i64, pp = 1 : i64, node = 2 : i64},
  k31.options = {activations = "bf16", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  nn.tensor @q "model.layers.{}.q.weight" members [0, 2] files [0] offsets [1000, 2000] : tensor<16x16xbf16>
  nn.tensor @g "model.layers.{}.g.weight" members [0, 2] files [0] offsets [3000, 5000] : tensor<32x16xbf16>
  nn.tensor @f "model.layers.{}.f.weight" members [0, 2] files [0] offsets [7000, 8000] : tensor<8x16xbf16>
  nn.tensor @other "model.other.weight" members [] files [0] offsets [9000] : tensor<16x16xbf16>
  nn.stack @stack.q [@q] rows [16] : tensor<16x16xbf16>
  nn.stack @stack.other [@other] rows [16] : tensor<16x16xbf16>
  nn.stack @stack.g [@g] rows [16] shard tp rows : tensor<16x16xbf16>
  nn.stack @stack.f [@f] rows [8] : tensor<8x16xbf16>
  nn.merged_stack @merged.q [@stack.q, @stack.g, @stack.f] : tensor<40x16xbf16>
  func.func @decode_b1(%x: tensor<1x16xbf16> {k31.input = "hidden"}, %live: tensor<1xi32> {k31.input = "counts"}) -> (tensor<1x8xf32> {k31.output = "logits"})
      attributes {k31.entry = {kind = "decode", rows = 1 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    %l = arith.constant 2 : index
    %r = func.call @body(%x, %live, %l) : (tensor<1x16xbf16>, tensor<1xi32>, index) -> tensor<1x8xf32>
    return %r : tensor<1x8xf32>
  }
  func.func private @body(%x: tensor<1x16xbf16>, %live: tensor<1xi32>, %l: index) -> tensor<1x8xf32> {
    %w = nn.weight @merged.q[%l] : tensor<40x16xbf16>
    %q, %g, %f = nn.linear %x, %w live %live attributes {k31.kernel = {name = "nn.linear", config = {n = 40 : i64}, tasks = 3 : i64, workspace = 0 : i64}} : (tensor<1x16xbf16>, tensor<40x16xbf16>, tensor<1xi32>) -> (tensor<1x16xbf16>, tensor<1x16xbf16>, tensor<1x8xf32>) loc("q+g+f")
    return %f : tensor<1x8xf32>
  }
  func.func @prefill_t4(%x: tensor<4x16xbf16> {k31.input = "hidden"}, %live: tensor<1xi32> {k31.input = "counts"}) -> (tensor<4x16xbf16> {k31.output = "hidden"})
      attributes {k31.entry = {kind = "prefill", rows = 4 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    %l = arith.constant 2 : index
    %r = func.call @alone(%x, %live, %l) : (tensor<4x16xbf16>, tensor<1xi32>, index) -> tensor<4x16xbf16>
    return %r : tensor<4x16xbf16>
  }
  func.func private @alone(%x: tensor<4x16xbf16>, %live: tensor<1xi32>, %l: index) -> tensor<4x16xbf16> {
    %w = nn.weight @stack.g[%l] : tensor<16x16xbf16>
    %o = nn.weight @stack.other : tensor<16x16xbf16>
    %y = nn.linear %x, %o live %live attributes {k31.kernel = {name = "nn.linear", config = {n = 16 : i64}, tasks = 3 : i64, workspace = 0 : i64}} : (tensor<4x16xbf16>, tensor<16x16xbf16>, tensor<1xi32>) -> tensor<4x16xbf16>
    %g = nn.linear %y, %w live %live attributes {k31.kernel = {name = "nn.linear", config = {n = 16 : i64}, tasks = 3 : i64, workspace = 0 : i64}} : (tensor<4x16xbf16>, tensor<16x16xbf16>, tensor<1xi32>) -> tensor<4x16xbf16>
    return %g : tensor<4x16xbf16>
  }
}
