// RUN: k31-opt %s -schedule | FileCheck %s

plan.arena @activations activations bytes 0
plan.kernel @k "nn.row add" symbol "" images [] config "" spec {name = "nn.row", config = {}}

// One stream: program order is enough.
// CHECK-LABEL: plan.entry @one
// CHECK-SAME: streams 1 events 0
// CHECK-NOT: plan.record
// CHECK-LABEL: plan.entry @two
plan.entry @one decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.alloc @activations : tensor<16xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%a read : tensor<16xui8>)
}

// The second stream waits once for the writer, and the first waits for the second's write; what is ordered already gets no event.
// CHECK-SAME: streams 2 events 2
// CHECK: plan.launch @k on 0{{.*}}"write a"
// CHECK-NEXT: plan.record 0 on 0
// CHECK-NEXT: plan.wait 0 on 1
// CHECK-NEXT: plan.launch @k on 1{{.*}}"a to b"
// CHECK-NEXT: plan.record 1 on 1
// CHECK-NEXT: plan.launch @k on 1{{.*}}"read a again"
// CHECK-NEXT: plan.launch @k on 0{{.*}}"other bytes"
// CHECK-NEXT: plan.wait 1 on 0
// CHECK-NEXT: plan.launch @k on 0{{.*}}"read b"
// CHECK-NOT: plan.wait
plan.entry @two decode rows 1 segments 1 logit_rows 1 stage 0 streams 2 events 0 {
  %a = plan.alloc @activations : tensor<16xui8>
  %b = plan.alloc @activations : tensor<16xui8>
  %head = plan.view %b at 0 : tensor<16xui8> -> tensor<8xui8>
  %tail = plan.view %b at 8 : tensor<16xui8> -> tensor<8xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>) "write a"
  plan.launch @k on 1 grid [1, 1, 1] (%a read : tensor<16xui8>, %head write : tensor<8xui8>) "a to b"
  plan.launch @k on 1 grid [1, 1, 1] (%a read : tensor<16xui8>) "read a again"
  plan.launch @k on 0 grid [1, 1, 1] (%tail write : tensor<8xui8>) "other bytes"
  plan.launch @k on 0 grid [1, 1, 1] (%b read : tensor<16xui8>) "read b"
}
