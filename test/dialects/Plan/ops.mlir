// Every op of plan: what is printed parses again and prints the same.
// RUN: k31-opt %s | FileCheck %s
// RUN: k31-opt %s | k31-opt | FileCheck %s
// RUN: k31-opt --mlir-print-op-generic %s | k31-opt | FileCheck %s

// CHECK: plan.key "0.1.0" target "cpu" options {max_batch = 8 : i64} checkpoint "ab" digest "cd"
plan.key "0.1.0" target "cpu" options {max_batch = 8 : i64} checkpoint "ab" digest "cd"
// CHECK: plan.mesh tp 1 dp 1 ep 1 pp 1 node 1
plan.mesh tp 1 dp 1 ep 1 pp 1 node 1
// CHECK: plan.model "kimi-k3.1" layers 0 to 2 of 2 hidden 32 vocab 64 max_context 512 max_batch 8 eos [3, 4] activations "bf16" reserve 0
plan.model "kimi-k3.1" layers 0 to 2 of 2 hidden 32 vocab 64 max_context 512 max_batch 8 eos [3, 4] activations "bf16" reserve 0
// CHECK: plan.arena @weights weights bytes 4096
plan.arena @weights weights bytes 4096
// CHECK: plan.arena @activations activations bytes 1024 alignment 64
plan.arena @activations activations bytes 1024 alignment 64
plan.arena @cache cache bytes 65536
// CHECK: plan.file "model.safetensors" bytes 8192
plan.file "model.safetensors" bytes 8192
// CHECK: plan.weights "layers.{}.w" members [0, 1] "BF16" [16, 32] in @weights at 0 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64 group [16, 16, 0] files [0, 0] offsets [0, 1024]
plan.weights "layers.{}.w" members [0, 1] "BF16" [16, 32] in @weights at 0 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] files [0, 0] offsets [0, 1024]
// CHECK: plan.weights "embed" members [] {{.+}} group [16, 16, 0] shard tp rows files [0] offsets [0]
plan.weights "embed" members [] "BF16" [16, 32] in @weights at 2048 stride 0 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] shard tp rows files [0] offsets [0]
// CHECK: plan.state block_tokens 256 blocks 4 slots 8
plan.state block_tokens 256 blocks 4 slots 8
// CHECK: plan.state_member latent layer 1 in @cache at 0 unit 16384 units 4
plan.state_member latent layer 1 in @cache at 0 unit 16384 units 4
// CHECK: plan.image @image "x86-64-v4" features ["avx512f"] code "\01\02"
plan.image @image "x86-64-v4" features ["avx512f"] code "\01\02"
// CHECK: plan.kernel @map "nn.map add" symbol "k31_map" images [@image] config "rows=8"
plan.kernel @map "nn.map add" symbol "k31_map" images [@image] config "rows=8"
// CHECK:      plan.kernel @later "nn.map relu" symbol "" images [] config "" spec {config = {rows = 8 : i64}, name = "nn.row"} {
// CHECK-NEXT: ^bb0(%{{.+}}: f32):
// CHECK-NEXT:   nn.yield
plan.kernel @later "nn.map relu" symbol "" images [] config "" spec {name = "nn.row", config = {rows = 8 : i64}} {
^bb0(%x: f32):
  nn.yield %x : f32
}
// CHECK:      plan.kernel @two "attn.kda_decode" symbol {{.*}} {
// CHECK-NEXT: ^bb0(%{{.+}}: f32):
// CHECK-NEXT:   nn.sum
// CHECK:      }, {
// CHECK-NEXT: ^bb0(%{{.+}}: f32):
// CHECK-NEXT:   nn.yield
plan.kernel @two "attn.kda_decode" symbol "" images [] config "" spec {name = "attn.kda_decode", config = {}} {
^bb0(%x: f32):
  %s = nn.sum %x : f32
  nn.yield %s : f32
}, {
^bb0(%x: f32):
  nn.yield %x : f32
}

// CHECK: plan.entry @decode_b8 decode rows 8 segments 8 logit_rows 8 stage 0 streams 2 events 1 {
plan.entry @decode_b8 decode rows 8 segments 8 logit_rows 8 stage 0 streams 2 events 1 {
  // CHECK: [[X:%.+]] = plan.slice @activations at 0 : tensor<8x16xbf16>
  %x = plan.slice @activations at 0 : tensor<8x16xbf16>
  // CHECK: [[Y:%.+]] = plan.alloc @activations : tensor<8x16xbf16>
  %y = plan.alloc @activations : tensor<8x16xbf16>
  // CHECK: plan.view [[Y]] at 64 : tensor<8x16xbf16> -> tensor<192xui8>
  %v = plan.view %y at 64 : tensor<8x16xbf16> -> tensor<192xui8>
  // CHECK: plan.input "tokens" [[X]] : tensor<8x16xbf16>
  plan.input "tokens" %x : tensor<8x16xbf16>
  // CHECK: plan.launch @map on 0 grid [4, 1, 1] ([[X]] read : tensor<8x16xbf16>, [[Y]] write : tensor<8x16xbf16>, %{{.+}} update : tensor<192xui8>) "layers.0.add"
  plan.launch @map on 0 grid [4, 1, 1] (%x read : tensor<8x16xbf16>, %y write : tensor<8x16xbf16>, %v update : tensor<192xui8>) "layers.0.add"
  // CHECK: plan.launch @map on 0 grid [1, 1, 1] block 128 smem 1024 ()
  plan.launch @map on 0 grid [1, 1, 1] block 128 smem 1024 ()
  // CHECK: plan.record 0 on 0
  plan.record 0 on 0
  // CHECK: plan.wait 0 on 1
  plan.wait 0 on 1
  // CHECK: plan.collective all_reduce over tp via library "bf16" count 128 [[Y]] to [[X]] on 1 "layers.0.reduce" : tensor<8x16xbf16> to tensor<8x16xbf16>
  plan.collective all_reduce over tp via library "bf16" count 128 %y to %x on 1 "layers.0.reduce" : tensor<8x16xbf16> to tensor<8x16xbf16>
  // CHECK: plan.collective send over pp via library "bf16" count 128 [[Y]] to [[X]] peer 1 on 1 :
  plan.collective send over pp via library "bf16" count 128 %y to %x peer 1 on 1 : tensor<8x16xbf16> to tensor<8x16xbf16>
  // CHECK: [[A:%.+]] = plan.slice @activations at 512 : tensor<64xui8>
  %a = plan.slice @activations at 512 : tensor<64xui8>
  // CHECK: plan.collective all_gather over tp via peer "bf16" count 128 [[Y]] to [[X]] by @map grid [4, 1, 1] block 256 smem 128 in [[A]] : tensor<64xui8> on 1 :
  plan.collective all_gather over tp via peer "bf16" count 128 %y to %x by @map grid [4, 1, 1] block 256 smem 128 in %a : tensor<64xui8> on 1 : tensor<8x16xbf16> to tensor<8x16xbf16>
  // CHECK: plan.collective all_reduce over tp via peer "bf16" count 128 [[Y]] to [[X]] by @map grid [4, 1, 1] block 1 smem 0 in [[A]] : tensor<64xui8> with (%{{.+}} read : tensor<64xui8>, %{{.+}} write : tensor<8x16xbf16>) on 1 :
  %b = plan.slice @activations at 1024 : tensor<64xui8>
  %c = plan.slice @activations at 1280 : tensor<8x16xbf16>
  plan.collective all_reduce over tp via peer "bf16" count 128 %y to %x by @map grid [4, 1, 1] block 1 smem 0 in %a : tensor<64xui8> with (%b read : tensor<64xui8>, %c write : tensor<8x16xbf16>) on 1 : tensor<8x16xbf16> to tensor<8x16xbf16>
  // CHECK: plan.copy [[Y]] to [[X]] on 1 : tensor<8x16xbf16> to tensor<8x16xbf16>
  plan.copy %y to %x on 1 : tensor<8x16xbf16> to tensor<8x16xbf16>
  // CHECK: plan.output "hidden" [[X]] : tensor<8x16xbf16>
  plan.output "hidden" %x : tensor<8x16xbf16>
}
