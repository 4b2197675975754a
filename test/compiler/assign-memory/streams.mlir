// RUN: k31-opt %s -assign-memory -check-plan | FileCheck %s

// On two streams without an event, one buffer's end in the program says nothing: they must not share bytes. With the event they do.
plan.arena @activations activations bytes 0
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""

// CHECK-LABEL: plan.entry @apart
// CHECK: plan.slice @activations at 0
// CHECK: plan.slice @activations at 256
plan.entry @apart decode rows 1 segments 1 logit_rows 1 stage 0 streams 2 events 0 {
  %a = plan.alloc @activations : tensor<256xui8>
  %b = plan.alloc @activations : tensor<256xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<256xui8>)
  plan.launch @k on 1 grid [1, 1, 1] (%b write : tensor<256xui8>)
}

// CHECK-LABEL: plan.entry @shared
// CHECK: plan.slice @activations at 0
// CHECK: plan.slice @activations at 0
plan.entry @shared decode rows 1 segments 1 logit_rows 1 stage 0 streams 2 events 1 {
  %a = plan.alloc @activations : tensor<256xui8>
  %b = plan.alloc @activations : tensor<256xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<256xui8>)
  plan.record 0 on 0
  plan.wait 0 on 1
  plan.launch @k on 1 grid [1, 1, 1] (%b write : tensor<256xui8>)
}
