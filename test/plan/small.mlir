// A plan with every table and command kind, small enough to read. Its code is a text, so it can be loaded and never run.
// RUN: k31-translate --mlir-to-plan %s -o %t.k31
// RUN: k31-translate --plan-to-mlir %t.k31 -o %t.mlir
// RUN: k31-translate --mlir-to-plan %t.mlir -o %t.again.k31
// RUN: cmp %t.k31 %t.again.k31
// RUN: FileCheck %s < %t.mlir
// RUN: k31-opt %s -check-plan -o /dev/null
// RUN: k31c inspect %t.k31 | FileCheck %s --check-prefix=TEXT
// RUN: k31c inspect %t.k31 --json --schedule --collectives --kernels --weights | %python %S/facts.py
// RUN: k31c inspect %t.k31 --weights | FileCheck %s --check-prefix=WEIGHTS
// RUN: k31c inspect %t.k31 --json | FileCheck %s --check-prefix=JSON
// RUN: k31c inspect %t.k31 --schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: k31c explain %t.k31 | FileCheck %s --check-prefix=EXPLAIN

// Every field arrives; buffers come back as bytes, inputs and outputs with their types.
// CHECK: plan.key "k31c test" target "cpu" options {a = "1", b = "two"} checkpoint "c0" digest "d0"
// CHECK: plan.mesh tp 2 dp 1 ep 2 pp 1 node 2
// CHECK: plan.model "kimi-k3.1" layers 0 to 1 of 1 hidden 8 vocab 16 max_context 256 max_batch 2 eos [3, 5] activations "bf16" reserve 4096
// CHECK: plan.file "model.safetensors" bytes 4096
// CHECK: plan.arena @activations activations bytes 1024 alignment 512
// CHECK: plan.weights "layers.{}.w" members [0, 2] "BF16" [16, 8] in @weights at 0 stride 256 rows [0, 8] of 16 bytes [0, 16] pitch 16 group [8, 8, 0] shard tp rows files [0, 0] offsets [128, 1024]
// CHECK: plan.weights "norm" members [] "F32" [8]
// CHECK: plan.state block_tokens 256 blocks 2 slots 3
// CHECK: plan.state_member latent layer 0 in @cache at 0 unit 512 units 2
// CHECK: plan.state_member kda layer 0 in @state at 0 unit 128 units 3
// CHECK: plan.image @image.0 "x86-64-v3" features ["avx2", "fma"] code "no code\00\01\FF"
// CHECK: plan.kernel @kernel.0 "nn.row add" symbol "k31_k0" images [@image.0] config "rows = 2" args [tensor<?x8xbf16>, tensor<?xi32>, tensor<?x16xui8>] starts_early
// CHECK: plan.note @note.0 "kernel" "4 tasks" because "a core takes 9 us" among ["1 task", "4 tasks"] nanoseconds [9000, 2500]
// CHECK: plan.note @note.1 "transport" "library" because "the peer transport is off"{{$}}
// CHECK: plan.entry @decode_b2 decode rows 2 segments 2 logit_rows 2 stage 0 streams 2 events 2 attributes {plan.notes = [@note.1]}
// CHECK: plan.input "counts" %{{.*}} : tensor<4xi32>
// CHECK: plan.output "logits" %{{.*}} : tensor<2x16xf32>
// CHECK: plan.launch @kernel.0 on 0 grid [4, 1, 1] (%{{.*}} read : tensor<256xui8>, %{{.*}} read : tensor<16xui8>, %{{.*}} write : tensor<64xui8>) "layers.0.norm" {plan.notes = [@note.0]}
// CHECK: plan.record 0 on 0
// CHECK: plan.wait 0 on 1
// CHECK: plan.collective all_reduce over tp via library "bf16" count 32 %{{.*}} to %{{.*}} on 1 "layers.0.sum" {plan.notes = [@note.1, @note.0]}
// CHECK: plan.copy

// TEXT: plan version 1.5 by k31c test, key d0
// TEXT: target cpu, mesh tp=2 dp=1 ep=2 pp=1 node=2 (2 ranks)
// TEXT: entry decode_b2 decode, 2 rows, 2 segments, 2 logit rows, 6 commands
// TEXT: cache: latent 1024 {{.*}} 2 bytes a token, 1 layer, 512 tokens
// TEXT: state: kda 384 {{.*}} 128 bytes a sequence, 1 layer, 3 slots
// TEXT: total 9984

// Streams: what a command waits for is named.
// EXPLAIN: kimi-k3.1, layer 0 of 1: target cpu, mesh tp=2 dp=1 ep=2 pp=1 node=2 (2 ranks)
// EXPLAIN: entry decode_b2: decode for up to 2 rows of 2 sequences, 6 commands on 2 streams
// EXPLAIN-NEXT: {{^}}  transport library: the peer transport is off
// EXPLAIN: layer 0
// EXPLAIN-NEXT: norm: nn.row add, 4 tasks{{$}}
// EXPLAIN-NEXT: config rows = 2
// EXPLAIN-NEXT: kernel 4 tasks: a core takes 9 us
// EXPLAIN-NEXT: compared: 4 tasks 2.5 us, 1 task 9.0 us
// EXPLAIN-NEXT: sum: all_reduce over tp by library, 32 x bf16, stream 1, after norm
// EXPLAIN-NEXT: transport library: the peer transport is off
// EXPLAIN: outside of the layers
// EXPLAIN: head: nn.row add, 1 task, stream 1

// WEIGHTS: layers.{}.w
// WEIGHTS: read by norm (nn.row add)
// WEIGHTS: norm
// WEIGHTS: read by nothing

// The JSON has what the text has; kernels come when they are asked for.
// JSON: "images"
// JSON-NOT: "kernels"

// SCHEDULE: entry decode_b2: 6 commands
// SCHEDULE: Launch layers.0.norm nn.row add
// SCHEDULE-NEXT: read weights[0, +256)
// SCHEDULE: Collective layers.0.sum all_reduce tp

plan.key "k31c test" target "cpu" options {a = "1", b = "two"} checkpoint "c0" digest "d0"
plan.mesh tp 2 dp 1 ep 2 pp 1 node 2
plan.model "kimi-k3.1" layers 0 to 1 of 1 hidden 8 vocab 16 max_context 256 max_batch 2 eos [3, 5] activations "bf16" reserve 4096
plan.file "model.safetensors" bytes 4096
plan.arena @weights weights bytes 768
plan.arena @cache cache bytes 1024
plan.arena @state state bytes 512
plan.arena @activations activations bytes 1024 alignment 512
plan.arena @io io bytes 2304
plan.arena @workspace workspace bytes 256
plan.weights "layers.{}.w" members [0, 2] "BF16" [16, 8] in @weights at 0 stride 256 rows [0, 8] of 16 bytes [0, 16] pitch 16 group [8, 8, 0] shard tp rows files [0, 0] offsets [128, 1024]
plan.weights "norm" members [] "F32" [8] in @weights at 512 stride 256 rows [0, 8] of 4 bytes [0, 4] pitch 4 group [8, 8, 0] files [0] offsets [2048]
plan.state block_tokens 256 blocks 2 slots 3
plan.state_member latent layer 0 in @cache at 0 unit 512 units 2
plan.state_member kda layer 0 in @state at 0 unit 128 units 3
plan.image @code "x86-64-v3" features ["avx2", "fma"] code "no code\00\01\FF"
plan.kernel @add "nn.row add" symbol "k31_k0" images [@code] config "rows = 2" args [tensor<?x8xbf16>, tensor<?xi32>, tensor<?x16xui8>] starts_early
plan.note @four "kernel" "4 tasks" because "a core takes 9 us" among ["1 task", "4 tasks"] nanoseconds [9000, 2500]
plan.note @tp "transport" "library" because "the peer transport is off"
plan.entry @decode_b2 decode rows 2 segments 2 logit_rows 2 stage 0 streams 2 events 2 attributes {plan.notes = [@tp]} {
  %tokens = plan.slice @io at 0 : tensor<2xi32>
  plan.input "tokens" %tokens : tensor<2xi32>
  %counts = plan.slice @io at 256 : tensor<4xi32>
  plan.input "counts" %counts : tensor<4xi32>
  %segments = plan.slice @io at 512 : tensor<2x6xi32>
  plan.input "segments" %segments : tensor<2x6xi32>
  %row_segment = plan.slice @io at 768 : tensor<2xi32>
  plan.input "row_segment" %row_segment : tensor<2xi32>
  %block_table = plan.slice @io at 1024 : tensor<2x1xi32>
  plan.input "block_table" %block_table : tensor<2x1xi32>
  %logit_rows = plan.slice @io at 1280 : tensor<2xi32>
  plan.input "logit_rows" %logit_rows : tensor<2xi32>
  %sampling = plan.slice @io at 1536 : tensor<2x24xui8>
  plan.input "sampling" %sampling : tensor<2x24xui8>
  %logits = plan.slice @io at 1792 : tensor<2x16xf32>
  %sampled = plan.slice @io at 2048 : tensor<2xi32>
  %w = plan.slice @weights at 0 : tensor<16x8xbf16>
  %a = plan.slice @activations at 0 : tensor<2x16xbf16>
  %b = plan.slice @activations at 256 : tensor<2x16xbf16>
  %c = plan.slice @activations at 512 : tensor<2x16xbf16>
  plan.launch @add on 0 grid [4, 1, 1] (%w read : tensor<16x8xbf16>, %counts read : tensor<4xi32>, %a write : tensor<2x16xbf16>) "layers.0.norm" {plan.notes = [@four]}
  plan.record 0 on 0
  plan.wait 0 on 1
  plan.collective all_reduce over tp via library "bf16" count 32 %a to %b on 1 "layers.0.sum" {plan.notes = [@tp, @four]} : tensor<2x16xbf16> to tensor<2x16xbf16>
  plan.copy %b to %c on 1 : tensor<2x16xbf16> to tensor<2x16xbf16>
  plan.launch @add on 1 grid [1, 1, 1] (%c read : tensor<2x16xbf16>, %logits write : tensor<2x16xf32>, %sampled write : tensor<2xi32>) "head"
  plan.output "logits" %logits : tensor<2x16xf32>
  plan.output "sampled" %sampled : tensor<2xi32>
}
