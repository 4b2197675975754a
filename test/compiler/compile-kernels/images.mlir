// RUN: k31-opt %s -compile-kernels=cache=%t.cache > %t.first
// RUN: k31-opt %s -compile-kernels=cache=%t.cache > %t.second
// RUN: cmp %t.first %t.second
// RUN: FileCheck %s --input-file=%t.first
// RUN: k31-opt %s -compile-kernels=levels=x86-64-v3 | FileCheck %s --check-prefix=LEVEL
// RUN: not k31-opt %s -compile-kernels=levels=8086 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// LEVEL-NOT: x86-64-v4
// LEVEL: plan.kernel @a {{.*}} images [@"x86-64-v3"]
// UNKNOWN: processor level '8086' is unknown; levels of target cpu are x86-64-v4-amx, x86-64-v4-bf16, x86-64-v4, x86-64-v3

// Two kernels that are equal share a symbol; the text of the Config and the images replace the spec and the region.
// CHECK: plan.image @"x86-64-v4-amx" "x86-64-v4-amx" features ["amx-bf16", "amx-tile", "avx2"
// CHECK: plan.image @"x86-64-v4-bf16" "x86-64-v4-bf16" features ["avx2", "avx512bf16", "avx512bw"
// CHECK: plan.image @"x86-64-v4" "x86-64-v4" features ["avx2", "avx512bw"
// CHECK: plan.image @"x86-64-v3" "x86-64-v3" features ["avx2", "bmi"
// CHECK: plan.kernel @a "nn.row neg" symbol "[[S:k31_[0-9a-f]+]]" images [@"x86-64-v4-amx", @"x86-64-v4-bf16", @"x86-64-v4", @"x86-64-v3"] config "cols = 16, inputs = 1, ld = [16], out_ld = [16], outputs = 1, rows = 1"
// CHECK-NOT: spec
// CHECK: plan.kernel @b "nn.row neg" symbol "[[S]]"
// One field of the Config, or the region, makes another kernel.
// CHECK-NOT: symbol "[[S]]"
plan.kernel @a "nn.row neg" symbol "" images [] config ""
  spec {name = "nn.row", config = {rows = 1 : i64, cols = 16 : i64, inputs = 1 : i64, outputs = 1 : i64, ld = array<i32: 16>, out_ld = array<i32: 16>}} {
^bb0(%x: f32):
  %y = arith.negf %x : f32
  nn.yield %y : f32
}
plan.kernel @b "nn.row neg" symbol "" images [] config ""
  spec {name = "nn.row", config = {rows = 1 : i64, cols = 16 : i64, inputs = 1 : i64, outputs = 1 : i64, ld = array<i32: 16>, out_ld = array<i32: 16>}} {
^bb0(%z: f32):
  %y = arith.negf %z : f32
  nn.yield %y : f32
}
plan.kernel @wider "nn.row neg" symbol "" images [] config ""
  spec {name = "nn.row", config = {rows = 1 : i64, cols = 32 : i64, inputs = 1 : i64, outputs = 1 : i64, ld = array<i32: 32>, out_ld = array<i32: 32>}} {
^bb0(%z: f32):
  %y = arith.negf %z : f32
  nn.yield %y : f32
}
plan.kernel @other "nn.row twice" symbol "" images [] config ""
  spec {name = "nn.row", config = {rows = 1 : i64, cols = 16 : i64, inputs = 1 : i64, outputs = 1 : i64, ld = array<i32: 16>, out_ld = array<i32: 16>}} {
^bb0(%z: f32):
  %y = arith.addf %z, %z : f32
  nn.yield %y : f32
}
