// RUN: k31-opt %s -check-plan -split-input-file -verify-diagnostics

plan.arena @activations activations bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
plan.entry @alloc decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  // expected-error@+1 {{has no offset; run assign-memory}}
  %a = plan.alloc @activations : tensor<16xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>)
}

// -----

plan.arena @activations activations bytes 512
plan.entry @view decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.slice @activations at 0 : tensor<16xui8>
  // expected-error@+1 {{has no offset; run assign-memory}}
  %b = plan.view %a at 4 : tensor<16xui8> -> tensor<8xui8>
}

// -----

plan.arena @activations activations bytes 512
plan.entry @outside decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  // expected-error@+1 {{has 16 bytes at 500, outside its arena @activations of 512}}
  %a = plan.slice @activations at 500 : tensor<16xui8>
}

// -----

// expected-error@+1 {{is not compiled; run compile-kernels}}
plan.kernel @k "nn.row add" symbol "" images [] config "" spec {name = "nn.row", config = {}}

// -----

// expected-error@+1 {{has neither code nor a spec to make it from}}
plan.kernel @k "nn.row add" symbol "" images [] config ""

// -----

plan.entry @stream decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 1 {
  // expected-error@+1 {{is on stream 1, but the entry has 1}}
  plan.record 0 on 1
}

// -----

plan.entry @event decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 1 {
  // expected-error@+1 {{names event 1, but the entry has 1}}
  plan.record 1 on 0
}

// -----

plan.entry @unknown_event decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 1 {
  // expected-error@+1 {{names event 3, but the entry has 1}}
  plan.wait 3 on 0
}

// -----

plan.entry @early decode rows 1 segments 1 logit_rows 1 stage 0 streams 2 events 1 {
  // expected-error@+1 {{waits for event 0, which no earlier command records}}
  plan.wait 0 on 1
  plan.record 0 on 0
}

// -----

plan.arena @activations activations bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
plan.entry @unwritten decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.slice @activations at 0 : tensor<16xui8>
  %b = plan.slice @activations at 8 : tensor<16xui8>
  %c = plan.slice @activations at 256 : tensor<16xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>)
  // expected-error@+1 {{('half') reads bytes [8, 24) of @activations, which nothing in the entry has written before}}
  plan.launch @k on 0 grid [1, 1, 1] (%b read : tensor<16xui8>, %c write : tensor<16xui8>) "half"
}

// -----

plan.arena @activations activations bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
plan.entry @inside decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.slice @activations at 0 : tensor<16xui8>
  %b = plan.slice @activations at 8 : tensor<16xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>)
  // expected-error@+1 {{has overlapping arguments 0 and 1, one of them written}}
  plan.launch @k on 0 grid [1, 1, 1] (%a read : tensor<16xui8>, %b write : tensor<16xui8>)
}

// -----

plan.arena @weights weights bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
plan.entry @weight decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.slice @weights at 0 : tensor<16xui8>
  // expected-error@+1 {{writes to the weights}}
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<16xui8>)
}

// -----

plan.arena @state state bytes 512
// expected-error@+1 {{needs 1024 bytes at 0, outside its arena @state of 512}}
plan.state_member kda layer 0 in @state at 0 unit 512 units 2

// -----

plan.arena @weights weights bytes 512
// expected-error@+1 {{needs 544 bytes at 0, outside its arena @weights of 512}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 8] in @weights at 0 stride 288 rows [0, 16] of 16 bytes [0, 16] pitch 16 group [16, 16, 0] files [0, 0] offsets [0, 256]

// -----

// Of members that ranks share out a rank has its share: two of four.
plan.mesh tp 1 dp 2 ep 2 pp 1 node 2
plan.arena @weights weights bytes 544
plan.weights "w.{}" members [0, 1, 2, 3] "BF16" [16, 8] in @weights at 0 stride 288 rows [0, 16] of 16 bytes [0, 16] pitch 16 group [16, 16, 0] shard ep members files [0, 0, 0, 0] offsets [0, 256, 512, 768]

// -----

plan.mesh tp 1 dp 2 ep 2 pp 1 node 2
plan.arena @weights weights bytes 543
// expected-error@+1 {{needs 544 bytes at 0, outside its arena @weights of 543}}
plan.weights "w.{}" members [0, 1, 2, 3] "BF16" [16, 8] in @weights at 0 stride 288 rows [0, 16] of 16 bytes [0, 16] pitch 16 group [16, 16, 0] shard ep members files [0, 0, 0, 0] offsets [0, 256, 512, 768]

// -----

// expected-error@+1 {{does not belong into a plan; run convert-ops-to-plan}}
nn.tensor @t "t" members [] files [0] offsets [0] : tensor<4xf32>

// -----

plan.arena @activations activations bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
// Half of %a is %b's by now.
plan.entry @overwritten decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.slice @activations at 0 : tensor<32xui8>
  %b = plan.slice @activations at 16 : tensor<16xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<32xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%b write : tensor<16xui8>)
  // expected-error@+1 {{reads bytes [0, 32) of @activations, some of which another buffer has taken since they were written}}
  plan.launch @k on 0 grid [1, 1, 1] (%a read : tensor<32xui8>)
}

// -----

plan.arena @activations activations bytes 512
plan.image @image "x86-64-v3" features ["avx2"] code "code"
plan.kernel @k "nn.row add" symbol "k" images [@image] config ""
// A view of the first buffer after the second one took half of its bytes.
plan.entry @view decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %a = plan.slice @activations at 0 : tensor<32xui8>
  %b = plan.slice @activations at 16 : tensor<64xui8>
  %v = plan.slice @activations at 8 : tensor<16xui8>
  plan.launch @k on 0 grid [1, 1, 1] (%a write : tensor<32xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%v read : tensor<16xui8>)
  plan.launch @k on 0 grid [1, 1, 1] (%b write : tensor<64xui8>)
  // expected-error@+1 {{reads bytes [8, 24) of @activations, some of which another buffer has taken since they were written}}
  plan.launch @k on 0 grid [1, 1, 1] (%v read : tensor<16xui8>)
}
