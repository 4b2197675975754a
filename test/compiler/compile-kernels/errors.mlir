// RUN: k31-opt %s -compile-kernels -split-input-file -verify-diagnostics

// expected-error @+1 {{the kernel's Config has no field 'colour'}}
plan.kernel @k "nn.gather" symbol "" images [] config "" spec {name = "nn.gather", config = {colour = 3 : i64}}

// -----

// expected-error @+1 {{field 'type' of the kernel's Config is "f64"; expected one of "f32", "bf16", "u8", "i32"}}
plan.kernel @k "nn.gather" symbol "" images [] config "" spec {name = "nn.gather", config = {type = "f64"}}

// -----

// expected-error @+1 {{there is no kernel 'nn.magic'}}
plan.kernel @k "nn.magic" symbol "" images [] config "" spec {name = "nn.magic", config = {}}

// -----

plan.kernel @k "nn.row f" symbol "" images [] config "" spec {name = "nn.row", config = {rows = 1 : i64, cols = 16 : i64, inputs = 1 : i64, outputs = 1 : i64}} {
^bb0(%x: f32):
  // expected-error @+1 {{has no form without a math library}}
  %y = math.powf %x, %x : f32
  nn.yield %y : f32
}
