// RUN: k31-opt %s -fuse-ops -split-input-file | FileCheck %s
// RUN: k31-opt %s -fuse-ops -split-input-file -mlir-print-debuginfo | FileCheck %s --check-prefix=NAMES

// Products of the same rows in two buckets: one each, with results of their own types. The product whose columns are no multiple of
// 16 comes last; its place among the rows of the weight follows.
// CHECK: nn.stack @stack.odd
// CHECK-NEXT: nn.merged_stack @merged.q [@stack.q, @stack.g, @stack.odd] : tensor<84x16xbf16>
// CHECK-LABEL: func.func @small
// CHECK: %[[W:.*]] = nn.weight @merged.q[%arg2] : tensor<84x16xbf16>
// CHECK-NEXT: %[[Y:.*]]:3 = nn.linear %arg0, %[[W]] live %arg1 attributes {k31.notes = [{about = "merge",
// CHECK-SAME: reason = "they multiply the same rows: 2 launches less; their weights lie one behind the other"}]}
// CHECK-SAME: -> (tensor<1x32xbf16>, tensor<1x48xbf16>, tensor<1x4xf32>)
// CHECK-NOT: nn.linear
// CHECK: return %[[Y]]#0, %[[Y]]#2, %[[Y]]#1
// CHECK-LABEL: func.func @large
// CHECK: nn.linear {{.*}} -> (tensor<8x32xbf16>, tensor<8x48xbf16>, tensor<8x4xf32>)
// NAMES: choice = "attn.q, attn.g and attn.odd"
// NAMES: loc(#[[ALL:.*]])
// NAMES: #[[ALL]] = loc("attn.q+attn.g+attn.odd")
nn.tensor @q "q{}" members [0, 1] files [0] offsets [0, 1] : tensor<32x16xbf16>
nn.tensor @odd "odd{}" members [0, 1] files [0] offsets [0, 1] : tensor<4x16xbf16>
nn.tensor @g "g{}" members [0, 1] files [0] offsets [0, 1] : tensor<96x16xbf16>
nn.stack @stack.q [@q] rows [32] : tensor<32x16xbf16>
nn.stack @stack.g [@g] rows [48] shard tp rows : tensor<48x16xbf16>
nn.stack @stack.odd [@odd] rows [4] : tensor<4x16xbf16>
func.func @small(%x: tensor<1x16xbf16>, %live: tensor<1xi32>, %l: index) -> (tensor<1x32xbf16>, tensor<1x4xf32>, tensor<1x48xbf16>) {
  %wq = nn.weight @stack.q[%l] : tensor<32x16xbf16>
  %q = nn.linear %x, %wq live %live : (tensor<1x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<1x32xbf16> loc("attn.q")
  %wo = nn.weight @stack.odd[%l] : tensor<4x16xbf16>
  %o = nn.linear %x, %wo live %live : (tensor<1x16xbf16>, tensor<4x16xbf16>, tensor<1xi32>) -> tensor<1x4xf32> loc("attn.odd")
  %wg = nn.weight @stack.g[%l] : tensor<48x16xbf16>
  %g = nn.linear %x, %wg live %live : (tensor<1x16xbf16>, tensor<48x16xbf16>, tensor<1xi32>) -> tensor<1x48xbf16> loc("attn.g")
  return %q, %o, %g : tensor<1x32xbf16>, tensor<1x4xf32>, tensor<1x48xbf16>
}
func.func @large(%x: tensor<8x16xbf16>, %live: tensor<1xi32>, %l: index) -> (tensor<8x32xbf16>, tensor<8x4xf32>, tensor<8x48xbf16>) {
  %wq = nn.weight @stack.q[%l] : tensor<32x16xbf16>
  %q = nn.linear %x, %wq live %live : (tensor<8x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<8x32xbf16> loc("attn.q")
  %wo = nn.weight @stack.odd[%l] : tensor<4x16xbf16>
  %o = nn.linear %x, %wo live %live : (tensor<8x16xbf16>, tensor<4x16xbf16>, tensor<1xi32>) -> tensor<8x4xf32> loc("attn.odd")
  %wg = nn.weight @stack.g[%l] : tensor<48x16xbf16>
  %g = nn.linear %x, %wg live %live : (tensor<8x16xbf16>, tensor<48x16xbf16>, tensor<1xi32>) -> tensor<8x48xbf16> loc("attn.g")
  return %q, %o, %g : tensor<8x32xbf16>, tensor<8x4xf32>, tensor<8x48xbf16>
}

// -----

// What stays apart: an epilogue, a weight of another type, other layers, a second odd number of columns. Each says why.
// CHECK: nn.merged_stack @merged.a [@stack.a, @stack.b, @stack.odd] : tensor<68x16xbf16>
// CHECK-LABEL: func.func @apart
// CHECK: nn.linear {{.*}} -> (tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x4xbf16>)
// CHECK: nn.linear {{.*}} attributes {k31.notes = [{about = "apart", {{.*}} reason = "no result could begin behind its 20 columns, no multiple of 16"}]}
// CHECK: nn.linear {{.*}} attributes {k31.notes = [{about = "apart", {{.*}} reason = "its weight holds f32, the other bf16"}]}
// CHECK: nn.linear {{.*}} attributes {k31.notes = [{about = "apart", {{.*}} reason = "its weight belongs to other layers"}]}
// CHECK: nn.linear {{.*}} fused ["neg"] {{.*}} reason = "its epilogue runs on its own sums"}]}
nn.tensor @a "a{}" members [0, 1] files [0] offsets [0, 1] : tensor<32x16xbf16>
nn.tensor @b "b{}" members [0, 1] files [0] offsets [0, 1] : tensor<32x16xbf16>
nn.tensor @odd "odd{}" members [0, 1] files [0] offsets [0, 1] : tensor<4x16xbf16>
nn.tensor @odder "odder{}" members [0, 1] files [0] offsets [0, 1] : tensor<20x16xbf16>
nn.tensor @f "f{}" members [0, 1] files [0] offsets [0, 1] : tensor<32x16xf32>
nn.tensor @one "one{}" members [1] files [0] offsets [0] : tensor<32x16xbf16>
nn.stack @stack.a [@a] rows [32] : tensor<32x16xbf16>
nn.stack @stack.b [@b] rows [32] : tensor<32x16xbf16>
nn.stack @stack.odd [@odd] rows [4] : tensor<4x16xbf16>
nn.stack @stack.odder [@odder] rows [20] : tensor<20x16xbf16>
nn.stack @stack.f [@f] rows [32] : tensor<32x16xf32>
nn.stack @stack.one [@one] rows [32] : tensor<32x16xbf16>
func.func @apart(%x: tensor<4x16xbf16>, %live: tensor<1xi32>, %l: index) -> (tensor<4x32xbf16>, tensor<4x4xbf16>, tensor<4x20xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>) {
  %wa = nn.weight @stack.a[%l] : tensor<32x16xbf16>
  %a = nn.linear %x, %wa live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %wo = nn.weight @stack.odd[%l] : tensor<4x16xbf16>
  %o = nn.linear %x, %wo live %live : (tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<1xi32>) -> tensor<4x4xbf16>
  %wp = nn.weight @stack.odder[%l] : tensor<20x16xbf16>
  %p = nn.linear %x, %wp live %live : (tensor<4x16xbf16>, tensor<20x16xbf16>, tensor<1xi32>) -> tensor<4x20xbf16>
  %wf = nn.weight @stack.f[%l] : tensor<32x16xf32>
  %f = nn.linear %x, %wf live %live : (tensor<4x16xbf16>, tensor<32x16xf32>, tensor<1xi32>) -> tensor<4x32xbf16>
  %w1 = nn.weight @stack.one[%l] : tensor<32x16xbf16>
  %1 = nn.linear %x, %w1 live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %wb = nn.weight @stack.b[%l] : tensor<32x16xbf16>
  %b = nn.linear %x, %wb live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %we = nn.weight @stack.b[%l] : tensor<32x16xbf16>
  %e = nn.linear %x, %we live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xf32>
  %n = nn.map ["neg"] live %live (%e) {
  ^bb0(%s: f32):
    %t = arith.negf %s : f32
    nn.yield %t : f32
  } : (tensor<1xi32>, tensor<4x32xf32>) -> tensor<4x32xbf16>
  %m = nn.row ["max"] live %live (%a, %b) {
  ^bb0(%s: f32, %v: f32):
    %t = arith.maximumf %s, %v : f32
    nn.yield %t : f32
  } : (tensor<1xi32>, tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<4x32xbf16>
  return %m, %o, %p, %f, %1, %n : tensor<4x32xbf16>, tensor<4x4xbf16>, tensor<4x20xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>
}

// -----

// Of two products one stays apart: it says why, as among three.
// CHECK-NOT: nn.merged
// CHECK-LABEL: func.func @pair
// CHECK: nn.linear {{.*}} attributes {k31.notes = [{about = "apart", choice = "down.gate from down.proj", reason = "its weight holds f32, the other bf16"}]}
nn.tensor @a "a" members [] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @f "f" members [] files [0] offsets [0] : tensor<32x16xf32>
nn.stack @stack.a [@a] rows [32] : tensor<32x16xbf16>
nn.stack @stack.f [@f] rows [32] : tensor<32x16xf32>
func.func @pair(%x: tensor<4x16xbf16>, %live: tensor<1xi32>) -> (tensor<4x32xbf16>, tensor<4x32xbf16>) {
  %wa = nn.weight @stack.a : tensor<32x16xbf16>
  %a = nn.linear %x, %wa live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16> loc("down.proj")
  %wf = nn.weight @stack.f : tensor<32x16xf32>
  %f = nn.linear %x, %wf live %live : (tensor<4x16xbf16>, tensor<32x16xf32>, tensor<1xi32>) -> tensor<4x32xbf16> loc("down.gate")
  return %a, %f : tensor<4x32xbf16>, tensor<4x32xbf16>
}

// -----

// Other rows, other live counts, rows of a weight that are no whole words of 16 bytes, a weight that is no member of a stack.
// CHECK-LABEL: func.func @others
// CHECK-NOT: nn.merged
// CHECK-NOT: merge
// CHECK: return
nn.tensor @a "a" members [] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @b "b" members [] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @c "c" members [] files [0] offsets [0] : tensor<32x12xbf16>
nn.tensor @d "d" members [] files [0] offsets [0] : tensor<32x12xbf16>
nn.stack @stack.a [@a] rows [32] : tensor<32x16xbf16>
nn.stack @stack.b [@b] rows [32] : tensor<32x16xbf16>
nn.stack @stack.c [@c] rows [32] : tensor<32x12xbf16>
nn.stack @stack.d [@d] rows [32] : tensor<32x12xbf16>
func.func @others(%x: tensor<4x16xbf16>, %y: tensor<4x16xbf16>, %z: tensor<4x12xbf16>, %w: tensor<32x16xbf16>, %live: tensor<1xi32>, %all: tensor<1xi32>)
    -> (tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>) {
  %wa = nn.weight @stack.a : tensor<32x16xbf16>
  %wb = nn.weight @stack.b : tensor<32x16xbf16>
  %wc = nn.weight @stack.c : tensor<32x12xbf16>
  %wd = nn.weight @stack.d : tensor<32x12xbf16>
  %a = nn.linear %x, %wa live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %b = nn.linear %x, %wb live %all : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %e = nn.linear %y, %wb live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %f = nn.linear %x, %w live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %c = nn.linear %z, %wc live %live : (tensor<4x12xbf16>, tensor<32x12xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %d = nn.linear %z, %wd live %live : (tensor<4x12xbf16>, tensor<32x12xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  return %a, %b, %c, %d, %e, %f : tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xbf16>
}

// -----

// One layout for all buckets: the three of the second one go together, so the two of the first one stay, and read their weights
// alone.
// CHECK: nn.merged_stack @merged.a [@stack.a, @stack.b, @stack.c]
// CHECK-NOT: nn.merged_stack
// CHECK-LABEL: func.func @two
// CHECK: nn.weight @stack.a :
// CHECK: nn.weight @stack.c :
// CHECK: nn.linear
// CHECK: nn.linear {{.*}} reason = "other products need the weights beside others: @stack.a"}]}
// CHECK-LABEL: func.func @three
// CHECK: nn.weight @merged.a :
nn.tensor @a "a" members [] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @b "b" members [] files [0] offsets [0] : tensor<32x16xbf16>
nn.tensor @c "c" members [] files [0] offsets [0] : tensor<32x16xbf16>
nn.stack @stack.a [@a] rows [32] : tensor<32x16xbf16>
nn.stack @stack.b [@b] rows [32] : tensor<32x16xbf16>
nn.stack @stack.c [@c] rows [32] : tensor<32x16xbf16>
func.func @two(%x: tensor<4x16xbf16>, %live: tensor<1xi32>) -> (tensor<4x32xbf16>, tensor<4x32xbf16>) {
  %wa = nn.weight @stack.a : tensor<32x16xbf16>
  %wc = nn.weight @stack.c : tensor<32x16xbf16>
  %a = nn.linear %x, %wa live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  %c = nn.linear %x, %wc live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  return %a, %c : tensor<4x32xbf16>, tensor<4x32xbf16>
}
func.func @three(%x: tensor<8x16xbf16>, %live: tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>) {
  %wa = nn.weight @stack.a : tensor<32x16xbf16>
  %wb = nn.weight @stack.b : tensor<32x16xbf16>
  %wc = nn.weight @stack.c : tensor<32x16xbf16>
  %a = nn.linear %x, %wa live %live : (tensor<8x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  %b = nn.linear %x, %wb live %live : (tensor<8x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  %c = nn.linear %x, %wc live %live : (tensor<8x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  return %a, %b, %c : tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>
}
