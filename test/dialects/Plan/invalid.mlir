// One case a message of the verifiers.
// RUN: k31-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected tp of 1 or more, found 0}}
plan.mesh tp 0 dp 1 ep 1 pp 1 node 1

// -----

// expected-error @below {{expected bytes of 0 or more, found -1}}
plan.arena @a weights bytes -1

// -----

// expected-error @below {{expected an alignment that is a power of two, found 48}}
plan.arena @a weights bytes 4096 alignment 48

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{pattern has 0 placeholders, but there are 2 members}}
plan.weights "w" members [0, 1] "BF16" [16, 32] in @a at 0 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] files [0, 0] offsets [0, 1024]

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{has 1 files and 2 offsets, expected 2, one a member}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 32] in @a at 0 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] files [0] offsets [0, 1024]

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{has 2 files and 3 offsets, expected 2, one a member}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 32] in @a at 0 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] files [0, 0] offsets [0, 1, 2]

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{bytes [32, 96) do not lie in a row of 64 bytes}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 32] in @a at 0 stride 1024 rows [0, 16] of 64 bytes [32, 64] pitch 64
  group [16, 16, 0] files [0, 0] offsets [0, 1024]

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{expected row_count of 1 or more, found 0}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 32] in @a at 0 stride 1024 rows [0, 0] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] files [0, 0] offsets [0, 1024]

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{expected group of 1 or more, found 0}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 32] in @a at 0 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [0, 16, 0] files [0, 0] offsets [0, 1024]

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{expected dest of 0 or more, found -8}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 32] in @a at -8 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] files [0, 0] offsets [0, 1024]

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{@b is not a plan.arena}}
plan.weights "w.{}" members [0, 1] "BF16" [16, 32] in @b at 0 stride 1024 rows [0, 16] of 64 bytes [0, 64] pitch 64
  group [16, 16, 0] files [0, 0] offsets [0, 1024]

// -----

// expected-error @below {{expected block_tokens of 1 or more, found 0}}
plan.state block_tokens 0 blocks 4 slots 8

// -----

// expected-error @below {{expected slots of 0 or more, found -1}}
plan.state block_tokens 256 blocks 4 slots -1

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{expected unit_bytes of 1 or more, found 0}}
plan.state_member latent layer 1 in @a at 0 unit 0 units 4

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{expected layer of 0 or more, found -1}}
plan.state_member latent layer -1 in @a at 0 unit 64 units 4

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{@b is not a plan.arena}}
plan.state_member latent layer 1 in @b at 0 unit 64 units 4

// -----

// expected-error @below {{has 0 images and the symbol 'k31_map': expected both, or neither before compile-kernels}}
plan.kernel @k "nn.map" symbol "k31_map" images [] config ""

// -----

// expected-error @below {{has neither code nor a spec to make it from}}
plan.kernel @k "nn.map" symbol "" images [] config ""

// -----

// expected-error @below {{@i is not a plan.image}}
plan.kernel @k "nn.map" symbol "k31_map" images [@i] config ""

// -----

// expected-error @below {{expected bodies of one block}}
plan.kernel @k "nn.map" symbol "" images [] config "" spec {} {
^bb0:
  nn.yield
^bb1:
  nn.yield
}

// -----

// expected-error @below {{expected rows of 1 or more, found 0}}
plan.entry @e decode rows 0 segments 8 logit_rows 8 stage 0 streams 1 events 0 {
}

// -----

// expected-error @below {{expected events of 0 or more, found -1}}
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events -1 {
}

// -----

// expected-error @below {{has 8 segments in 4 rows: a segment has one row or more}}
plan.entry @e prefill rows 4 segments 8 logit_rows 8 stage 0 streams 1 events 0 {
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  // expected-error @below {{expected offset of 0 or more, found -4}}
  %x = plan.slice @a at -4 : tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  // expected-error @below {{result is 'tensor<?x16xbf16>', expected a static shape of one byte or more}}
  %x = plan.slice @a at 0 : tensor<?x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  // expected-error @below {{@b is not a plan.arena}}
  %x = plan.slice @b at 0 : tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  // expected-error @below {{result is 'tensor<0xf32>', expected a static shape of one byte or more}}
  %x = plan.alloc @a : tensor<0xf32>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  // expected-error @below {{@b is not a plan.arena}}
  %x = plan.alloc @b : tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{bytes [192, 320) do not lie in the 256 bytes of the source}}
  %y = plan.view %x at 192 : tensor<8x16xbf16> -> tensor<8x8xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{@k is not a plan.kernel}}
  plan.launch @k on 0 grid [1, 1, 1] (%x read : tensor<8x16xbf16>)
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{expected read, write or update, found 'reads'}}
  plan.launch @k on 0 grid [1, 1, 1] (%x reads : tensor<8x16xbf16>)
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{has 1 arguments, but 0 accesses}}
  "plan.launch"(%x) <{kernel = @k, stream = 0 : i32, grid = array<i32: 1, 1, 1>, access = array<i32>}> : (tensor<8x16xbf16>) -> ()
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{has access 7, expected 0 (read), 1 (write) or 2 (update)}}
  "plan.launch"(%x) <{kernel = @k, stream = 0 : i32, grid = array<i32: 1, 1, 1>, access = array<i32: 7>}> : (tensor<8x16xbf16>) -> ()
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{expected a grid of three sizes of 1 or more, found [0, 1, 1]}}
  plan.launch @k on 0 grid [0, 1, 1] (%x read : tensor<8x16xbf16>)
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{expected block of 1 or more, found 0}}
  plan.launch @k on 0 grid [1, 1, 1] block 0 (%x read : tensor<8x16xbf16>)
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{is on stream 1, but the entry has 1}}
  plan.launch @k on 1 grid [1, 1, 1] (%x read : tensor<8x16xbf16>)
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  %y = plan.slice @a at 512 : tensor<64xbf16>
  // expected-error @below {{source has 256 bytes, but destination has 128 bytes}}
  plan.copy %x to %y on 0 : tensor<8x16xbf16> to tensor<64xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{expected a mesh axis, found none}}
  plan.collective all_reduce over none via library "bf16" count 128 %x to %x on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{count is 64, but the source has 128 elements}}
  plan.collective all_reduce over tp via library "bf16" count 64 %x to %x on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{names event 1, but the entry has 1}}
  plan.record 1 on 0
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{names event 2, but the entry has 1}}
  plan.wait 2 on 0
}

// -----

// expected-error @below {{is a command: expected it inside plan.entry}}
plan.record 0 on 0

// -----

plan.arena @a activations bytes 4096
// expected-error @below {{a shard needs both an axis and what is divided}}
"plan.weights"() <{pattern = "w", members = array<i32>, dtype = "BF16", shape = array<i64: 16, 32>, files = array<i32: 0>, offsets = array<i64: 0>, arena = @a,
  dest = 0 : i64, stride = 0 : i64, row_bytes = 64 : i64, row_begin = 0 : i64, row_count = 16 : i64, byte_begin = 0 : i64, byte_count = 64 : i64,
  dest_row_bytes = 64 : i64, group = 16 : i64, group_stride = 16 : i64, group_begin = 0 : i64, shard_axis = 1 : i32}> : () -> ()

// -----

// expected-error @below {{has 2 candidates, but 1 times}}
plan.note @n "kernel" "a" because "b" among ["a", "c"] nanoseconds [1]

// -----

// expected-error @below {{chose "a", which is none of its candidates}}
plan.note @n "kernel" "a" because "b" among ["c"] nanoseconds [1]

// -----

// expected-error @below {{has notes; launches, collectives and entries do}}
plan.arena @a activations bytes 4096 {plan.notes = []}

// -----

// expected-error @below {{has notes [1], expected symbols of plan.note}}
plan.entry @e decode rows 1 segments 1 logit_rows 1 stage 0 streams 1 events 0 attributes {plan.notes = [1]} {
}

// -----

plan.arena @a activations bytes 4096
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{goes by peer, which needs a kernel, its grid and an area}}
  plan.collective all_reduce over tp via peer "bf16" count 128 %x to %x on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.kernel @k "k" symbol "" images [] config "" spec {name = "k"}
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{has a kernel or an area; collectives that go by peer do}}
  plan.collective all_reduce over tp via library "bf16" count 128 %x to %x by @k grid [1, 1, 1] block 1 smem 0 in %x : tensor<8x16xbf16> on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.kernel @k "k" symbol "" images [] config "" spec {name = "k"}
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{has arguments of a row op; sums that go by peer may have them}}
  plan.collective all_gather over tp via peer "bf16" count 128 %x to %x by @k grid [1, 1, 1] block 1 smem 0 in %x : tensor<8x16xbf16> with (%x read : tensor<8x16xbf16>) on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.kernel @k "k" symbol "" images [] config "" spec {name = "k"}
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{has arguments of a row op; sums that go by peer may have them}}
  plan.collective all_reduce over tp via library "bf16" count 128 %x to %x  with (%x read : tensor<8x16xbf16>) on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.kernel @k "k" symbol "" images [] config "" spec {name = "k"}
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{has a kernel or an area; collectives that go by peer do}}
  plan.collective all_reduce over tp via library "bf16" count 128 %x to %x by @k grid [1, 1, 1] block 1 smem 0 on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.kernel @k "k" symbol "" images [] config "" spec {name = "k"}
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{expected a grid of three sizes of 1 or more, found [4, 1]}}
  plan.collective all_reduce over tp via peer "bf16" count 128 %x to %x by @k grid [4, 1] block 1 smem 0 in %x : tensor<8x16xbf16> on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}

// -----

plan.arena @a activations bytes 4096
plan.kernel @k "k" symbol "" images [] config "" spec {name = "k"}
plan.entry @e decode rows 8 segments 8 logit_rows 8 stage 0 streams 1 events 1 {
  %x = plan.slice @a at 0 : tensor<8x16xbf16>
  // expected-error @below {{expected block of 1 or more, found 0}}
  plan.collective all_reduce over tp via peer "bf16" count 128 %x to %x by @k grid [4, 1, 1] block 0 smem 0 in %x : tensor<8x16xbf16> on 0 : tensor<8x16xbf16> to tensor<8x16xbf16>
}
