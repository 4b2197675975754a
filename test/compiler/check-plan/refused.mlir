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

// -----

// Of 2 ranks: rows of all of them, a share of the sum, the neighbour's rows. Several collectives may read the same bytes.
plan.mesh tp 2 dp 1 ep 2 pp 2 node 4
plan.arena @io io bytes 512
plan.entry @ranks decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %x = plan.slice @io at 0 : tensor<32xf32>
  %all = plan.slice @io at 256 : tensor<64xf32>
  plan.collective all_gather over tp via library "f32" count 32 %x to %all on 0 : tensor<32xf32> to tensor<64xf32>
  plan.collective reduce_scatter over ep via library "f32" count 64 %all to %x on 0 : tensor<64xf32> to tensor<32xf32>
  plan.collective send over pp via library "f32" count 32 %x to %x peer 1 on 0 : tensor<32xf32> to tensor<32xf32>
  // expected-error@+1 {{has a destination of 128 bytes, expected 256 over 2 ranks of ep}}
  plan.collective all_gather over ep via library "f32" count 32 %x to %x on 0 : tensor<32xf32> to tensor<32xf32>
}

// -----

plan.mesh tp 3 dp 1 ep 3 pp 1 node 3
plan.arena @io io bytes 512
plan.entry @pieces decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %x = plan.slice @io at 0 : tensor<32xf32>
  %y = plan.slice @io at 128 : tensor<10xf32>
  // expected-error@+1 {{shares out 32 elements, which are no equal pieces for the 3 ranks of tp}}
  plan.collective reduce_scatter over tp via library "f32" count 32 %x to %y on 0 : tensor<32xf32> to tensor<10xf32>
}

// -----

plan.mesh tp 1 dp 1 ep 1 pp 2 node 2
plan.arena @io io bytes 512
plan.entry @neighbour decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 {
  %x = plan.slice @io at 0 : tensor<32xf32>
  // expected-error@+1 {{is with rank 2, but there are 2 ranks of pp}}
  plan.collective send over pp via library "f32" count 32 %x to %x peer 2 on 0 : tensor<32xf32> to tensor<32xf32>
}

// -----

// Members over another axis than ep are shares too: here a rank of 2 holds 2 of 4.
plan.mesh tp 2 dp 2 ep 4 pp 1 node 4
plan.arena @weights weights bytes 543
// expected-error@+1 {{needs 544 bytes at 0, outside its arena @weights of 543}}
plan.weights "w.{}" members [0, 1, 2, 3] "BF16" [16, 8] in @weights at 0 stride 288 rows [0, 16] of 16 bytes [0, 16] pitch 16 group [16, 16, 0] shard edp members files [0, 0, 0, 0] offsets [0, 256, 512, 768]
