// RUN: k31-opt %s -check-plan -split-input-file -verify-diagnostics

// Two writers of the same bytes on two streams.
plan.arena @io io bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
plan.entry @write_write decode rows 1 segments 1 logit_rows 1 stage 0 streams 2 events 0 {
  %a = plan.slice @io at 0 : tensor<16xui8>
  %b = plan.slice @io at 8 : tensor<16xui8>
  // expected-note@+1 {{the other command, on stream 0}}
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>) "first"
  // expected-error@+1 {{('second') and 'first' both touch bytes [8, 16) of @io, one of them writing, and no event orders them}}
  plan.launch @k on 1 grid [1, 1, 1] (%b write : tensor<16xui8>) "second"
}

// -----

// A read beside a write: the event is recorded before the write, so it orders nothing.
plan.arena @activations activations bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
plan.entry @read_write decode rows 1 segments 1 logit_rows 1 stage 0 streams 2 events 1 {
  %a = plan.slice @activations at 0 : tensor<16xui8>
  plan.record 0 on 0
  // expected-note@+1 {{the other command, on stream 0}}
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>) "first"
  plan.wait 0 on 1
  // expected-error@+1 {{('second') and 'first' both touch bytes [0, 16) of @activations, one of them writing, and no event orders them}}
  plan.launch @k on 1 grid [1, 1, 1] (%a read : tensor<16xui8>) "second"
}

// -----

// Ordered by an event, and by an event through a third stream; reads need no order.
plan.arena @io io bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
plan.entry @ordered decode rows 1 segments 1 logit_rows 1 stage 0 streams 3 events 2 {
  %a = plan.slice @io at 0 : tensor<16xui8>
  %b = plan.slice @io at 256 : tensor<16xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%b read : tensor<16xui8>, %a write : tensor<16xui8>)
  plan.record 0 on 0
  plan.wait 0 on 1
  plan.record 1 on 1
  plan.wait 1 on 2
  plan.launch @k on 2 grid [1, 1, 1] (%b read : tensor<16xui8>, %a write : tensor<16xui8>)
}
