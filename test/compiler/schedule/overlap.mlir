// On a GPU launches that need nothing of a collective run beside it: they move up in front of what waits for it.
// RUN: k31-opt %s -schedule | FileCheck %s
// RUN: k31-opt %s -schedule -assign-memory | FileCheck %s --check-prefix=PLACED

plan.key "k31" target "sm_90a" options {} checkpoint "c" digest "d"
plan.arena @activations activations bytes 0
plan.kernel @k "nn.row add" symbol "" images [] config "" spec {name = "nn.row", config = {}}

// CHECK: plan.note @note.0 "overlap" "2 launches beside it" because "shared.gate, shared.down need nothing of it and run on stream 0 meanwhile"
// CHECK-LABEL: plan.entry @beside
// CHECK-SAME: streams 2 events 4
// CHECK: plan.launch @k on 0{{.*}}"layers.3.routed"
// CHECK-NEXT: plan.record [[MADE:[0-9]+]] on 0
// CHECK: plan.wait [[MADE]] on 1
// CHECK-NEXT: plan.collective all_reduce {{.*}} on 1 {{.*}}plan.notes = [@note.0]
// CHECK-NEXT: plan.record [[SUM:[0-9]+]] on 1
// CHECK: plan.launch @k on 0{{.*}}"layers.3.shared.gate"
// CHECK-NOT: plan.wait
// CHECK: plan.launch @k on 0{{.*}}"layers.3.shared.down"
// CHECK: plan.wait [[SUM]] on 0
// CHECK-NEXT: plan.launch @k on 0{{.*}}"layers.3.norm"
// The second collective has nobody beside it and still goes to the stream of the first.
// CHECK: plan.collective all_reduce {{.*}} on 1 :
// Bytes of the sum cannot be those of a launch beside it: all four buffers are apart.
// PLACED: plan.arena @activations activations bytes 1024
plan.entry @beside decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %part = plan.alloc @activations : tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%part write : tensor<64xf32>) "layers.3.routed"
  %sum = plan.alloc @activations : tensor<64xf32>
  plan.collective all_reduce over tp via library "f32" count 64 %part to %sum on 0 : tensor<64xf32> to tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%sum update : tensor<64xf32>) "layers.3.norm"
  %gate = plan.alloc @activations : tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%gate write : tensor<64xf32>) "layers.3.shared.gate"
  %down = plan.alloc @activations : tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%gate read : tensor<64xf32>, %down write : tensor<64xf32>) "layers.3.shared.down"
  plan.launch @k on 0 grid [1, 1, 1] (%sum read : tensor<64xf32>, %down update : tensor<64xf32>) "layers.3.add"
  plan.collective all_reduce over tp via library "f32" count 64 %down to %down on 0 : tensor<64xf32> to tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%down update : tensor<64xf32>) "layers.3.end"
}

// Where everything waits for its collective nothing changes.
// CHECK-LABEL: plan.entry @alone
// CHECK-SAME: streams 1 events 0
// CHECK: plan.collective all_reduce {{.*}} on 0 :
plan.entry @alone decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %part = plan.alloc @activations : tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%part write : tensor<64xf32>) "routed"
  plan.collective all_reduce over tp via library "f32" count 64 %part to %part on 0 : tensor<64xf32> to tensor<64xf32>
  plan.launch @k on 0 grid [1, 1, 1] (%part update : tensor<64xf32>) "norm"
}

// The option turns it off.
// RUN: sed 's/options {}/options {overlap = "off"}/' %s | k31-opt -schedule | FileCheck %s --check-prefix=OFF
// OFF-NOT: plan.note
// OFF-NOT: plan.wait
