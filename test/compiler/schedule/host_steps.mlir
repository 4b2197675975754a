// On a host commands stand in the order of their steps: one behind the last command that they have to wait for. Buffers share bytes
// from step to step only, so that reuse does not order what can run at once.
// RUN: k31-opt %s -schedule | FileCheck %s
// RUN: k31-opt %s -schedule -assign-memory 2>&1 | FileCheck %s --check-prefix=MEMORY

plan.key "k31c test" target "cpu" options {} checkpoint "0" digest "0"
plan.arena @activations activations bytes 0
plan.arena @io io bytes 0
plan.kernel @k "nn.row add" symbol "" images [] config "" spec {name = "nn.row", config = {}}

// Two chains from one input. Without steps the second chain would take the place of what the first has done with, and wait for it.
// CHECK-LABEL: plan.entry @chains
// CHECK: plan.launch {{.*}} "a1"
// CHECK-NEXT: plan.launch {{.*}} "b1"
// CHECK-NEXT: plan.launch {{.*}} "a2"
// CHECK-NEXT: plan.launch {{.*}} "b2"
// CHECK-NEXT: plan.launch {{.*}} "a3"
// CHECK-NEXT: plan.launch {{.*}} "join"
// a1 and b1 side by side, a2 and b2 side by side, a3 in the place of a1.
// MEMORY: @chains activations: 1024 bytes for 5 buffers of 1280, at most 1024 live at once
plan.entry @chains decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %in = plan.alloc @io : tensor<8xi32>
  plan.input "tokens" %in : tensor<8xi32>
  %out = plan.alloc @io : tensor<8xi32>
  %a1 = plan.alloc @activations : tensor<256xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%in read : tensor<8xi32>, %a1 write : tensor<256xui8>) "a1"
  %a2 = plan.alloc @activations : tensor<256xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a1 read : tensor<256xui8>, %a2 write : tensor<256xui8>) "a2"
  %a3 = plan.alloc @activations : tensor<256xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a2 read : tensor<256xui8>, %a3 write : tensor<256xui8>) "a3"
  %b1 = plan.alloc @activations : tensor<256xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%in read : tensor<8xi32>, %b1 write : tensor<256xui8>) "b1"
  %b2 = plan.alloc @activations : tensor<256xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%b1 read : tensor<256xui8>, %b2 write : tensor<256xui8>) "b2"
  plan.launch @k on 0 grid [1, 1, 1] (%a3 read : tensor<256xui8>, %b2 read : tensor<256xui8>, %out write : tensor<8xi32>) "join"
  plan.output "sampled" %out : tensor<8xi32>
}

// A collective is a step of its own; what stands behind it stays behind it, on every rank alike.
// CHECK-LABEL: plan.entry @collective
// CHECK: "before"
// CHECK-NEXT: plan.collective
// CHECK-NEXT: "behind"
plan.entry @collective decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %in = plan.alloc @io : tensor<8xi32>
  plan.input "tokens" %in : tensor<8xi32>
  %out = plan.alloc @io : tensor<8xi32>
  %a = plan.alloc @activations : tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%in read : tensor<8xi32>, %a write : tensor<64xf32>) "before"
  plan.collective all_reduce over tp via library "f32" count 64 %a to %a on 0 "sum" : tensor<64xf32> to tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%in read : tensor<8xi32>, %out write : tensor<8xi32>) "behind"
  plan.output "sampled" %out : tensor<8xi32>
}
