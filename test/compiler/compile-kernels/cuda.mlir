// REQUIRES: nvrtc
// RUN: k31-opt %s -compile-kernels="target=sm_90a" > %t.first
// RUN: k31-opt %s -compile-kernels="target=sm_90a cache=%t.cache" > %t.second
// RUN: cmp %t.first %t.second
// RUN: k31-opt %s -compile-kernels="target=sm_90a cache=%t.cache" > %t.third
// RUN: cmp %t.first %t.third
// RUN: FileCheck %s --input-file=%t.first

// One image a kernel; equal kernels share one. The code is an ELF file, the same in every compile.
// CHECK-COUNT-2: plan.image @k31_{{[0-9a-f]+}} "sm_90a" features [] code "\7FELF
// CHECK-NOT: plan.image
// CHECK: plan.kernel @a "nn.row neg" symbol "[[S:k31_[0-9a-f]+]]" images [@[[S]]] config "cols = 16, inputs = 1, ld = [16], out_ld = [16], outputs = 1, rows = 1
// CHECK-NOT: spec
// CHECK: plan.kernel @b "nn.row neg" symbol "[[S]]" images [@[[S]]]
plan.kernel @a "nn.row neg" symbol "" images [] config ""
  spec {name = "nn.row", config = {rows = 1 : i64, cols = 16 : i64, inputs = 1 : i64, outputs = 1 : i64, ld = array<i32: 16>, out_ld = array<i32: 16>}, tile = {}} {
^bb0(%x: f32):
  %y = arith.negf %x : f32
  nn.yield %y : f32
}
// Another capacity: the same image.
plan.kernel @b "nn.row neg" symbol "" images [] config ""
  spec {name = "nn.row", config = {rows = 4096 : i64, cols = 16 : i64, inputs = 1 : i64, outputs = 1 : i64, ld = array<i32: 16>, out_ld = array<i32: 16>}, tile = {}} {
^bb0(%z: f32):
  %y = arith.negf %z : f32
  nn.yield %y : f32
}

// Every form of CudaRegions.cpp in one region, with sums of two depths: NVRTC takes it.
// CHECK: plan.kernel @all "nn.row all" symbol "k31_
plan.kernel @all "nn.row all" symbol "" images [] config ""
  spec {name = "nn.row", config = {rows = 2 : i64, cols = 32 : i64, inputs = 2 : i64, outputs = 2 : i64, ld = array<i32: 32, 32>, out_ld = array<i32: 32, 32>, phases = 2 : i64, sums = array<i32: 1, 1>}, tile = {}} {
^bb0(%x: f32, %y: f32):
  %inf = arith.constant 0x7F800000 : f32
  %tenth = arith.constant -0.1 : f32
  %one = arith.constant 1 : i32
  %yes = arith.constant true
  %s0 = nn.sum %x : f32
  %0 = arith.addf %x, %s0 : f32
  %1 = arith.subf %0, %tenth : f32
  %2 = arith.mulf %1, %y : f32
  %3 = arith.divf %2, %inf : f32
  %4 = arith.remf %3, %y : f32
  %5 = arith.negf %4 : f32
  %6 = arith.maximumf %5, %y : f32
  %7 = arith.minimumf %6, %x : f32
  %8 = arith.maxnumf %7, %y : f32
  %9 = arith.minnumf %8, %x : f32
  %s1 = nn.sum %9 : f32
  %10 = math.absf %s1 : f32
  %11 = math.ceil %10 : f32
  %12 = math.copysign %11, %y : f32
  %13 = math.cos %12 : f32
  %14 = math.erf %13 : f32
  %15 = math.exp %14 : f32
  %16 = math.exp2 %15 : f32
  %17 = math.expm1 %16 : f32
  %18 = math.floor %17 : f32
  %19 = math.fma %18, %x, %y : f32
  %20 = math.log %19 : f32
  %21 = math.log1p %20 : f32
  %22 = math.log2 %21 : f32
  %23 = math.powf %22, %y : f32
  %24 = math.roundeven %23 : f32
  %25 = math.rsqrt %24 : f32
  %26 = math.sin %25 : f32
  %27 = math.sqrt %26 : f32
  %28 = math.tanh %27 : f32
  %29 = math.trunc %28 : f32
  %30 = arith.truncf %29 : f32 to bf16
  %31 = arith.addf %30, %30 : bf16
  %32 = arith.extf %31 : bf16 to f32
  %33 = arith.bitcast %32 : f32 to i32
  %34 = arith.addi %33, %one : i32
  %35 = arith.subi %34, %one : i32
  %36 = arith.muli %35, %35 : i32
  %37 = arith.andi %36, %33 : i32
  %38 = arith.ori %37, %one : i32
  %39 = arith.xori %38, %33 : i32
  %40 = arith.bitcast %39 : i32 to f32
  %41 = arith.sitofp %39 : i32 to f32
  %42 = arith.uitofp %39 : i32 to f32
  %43 = arith.fptosi %42 : f32 to i32
  %44 = arith.cmpi slt, %43, %39 : i32
  %45 = arith.cmpf one, %40, %41 : f32
  %46 = arith.cmpf uge, %40, %41 : f32
  %47 = arith.cmpf uno, %40, %41 : f32
  %48 = math.isfinite %40 : f32
  %49 = math.isnan %41 : f32
  %50 = math.isinf %41 : f32
  %51 = arith.andi %44, %45 : i1
  %52 = arith.ori %51, %46 : i1
  %53 = arith.xori %52, %47 : i1
  %54 = arith.andi %53, %48 : i1
  %55 = arith.ori %54, %49 : i1
  %56 = arith.ori %55, %50 : i1
  %57 = arith.andi %56, %yes : i1
  %58 = arith.select %57, %40, %41 : f32
  nn.yield %58, %32 : f32, f32
}
