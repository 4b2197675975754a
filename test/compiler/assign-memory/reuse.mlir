// RUN: k31-opt %s -assign-memory 2>/dev/null | FileCheck %s
// RUN: k31-opt %s -assign-memory 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

plan.arena @activations activations bytes 0
plan.arena @io io bytes 0
plan.kernel @k "nn.row add" symbol "" images [] config "" spec {name = "nn.row", config = {}}

// A chain: each buffer may take the place of the one before the last. The arena is as large as the largest entry needs.
// REMARK: remark: @chain activations: 512 bytes for 4 buffers of 1024, at most 512 live at once
// REMARK: remark: @wide activations: 1280 bytes for 2 buffers of 1280, at most 1280 live at once
// CHECK: plan.arena @activations activations bytes 1280
// CHECK: plan.arena @io io bytes 512
// CHECK-LABEL: plan.entry @chain
// CHECK-NOT: plan.alloc
// CHECK: plan.slice @io at 0 : tensor<8xi32>
// CHECK: plan.slice @io at 256 : tensor<8xi32>
// CHECK-NOT: plan.view
// CHECK-LABEL: plan.entry @wide
plan.entry @chain decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %in = plan.alloc @io : tensor<8xi32>
  plan.input "tokens" %in : tensor<8xi32>
  %out = plan.alloc @io : tensor<8xi32>
  %a = plan.alloc @activations : tensor<256xui8>
  %b = plan.alloc @activations : tensor<256xui8>
  %c = plan.alloc @activations : tensor<200xui8>
  %d = plan.alloc @activations : tensor<256xui8>
  %unused = plan.alloc @activations : tensor<4096xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%in read : tensor<8xi32>, %a write : tensor<256xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%a read : tensor<256xui8>, %b write : tensor<256xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%b read : tensor<256xui8>, %c write : tensor<200xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%c read : tensor<200xui8>, %d write : tensor<256xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%d read : tensor<256xui8>, %out write : tensor<8xi32>)
  plan.output "sampled" %out : tensor<8xi32>
}

// A view keeps its buffer alive and becomes a slice at its own offset.
// CHECK: plan.slice @activations at 0 : tensor<1024xui8>
// CHECK: plan.slice @activations at 1024 : tensor<256xui8>
// CHECK: plan.slice @activations at 100 : tensor<10xui8>
plan.entry @wide decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.alloc @activations : tensor<1024xui8>
  %b = plan.alloc @activations : tensor<256xui8>
  %view = plan.view %a at 100 : tensor<1024xui8> -> tensor<10xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<1024xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%b write : tensor<256xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%view read : tensor<10xui8>, %b read : tensor<256xui8>)
}
