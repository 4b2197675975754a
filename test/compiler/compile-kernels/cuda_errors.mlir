// REQUIRES: nvrtc
// RUN: k31-opt %s -compile-kernels=target=sm_90a -split-input-file -verify-diagnostics

// expected-error @+1 {{needs a spec with a name, a config and a tile}}
plan.kernel @k "nn.gather" symbol "" images [] config "" spec {name = "nn.gather", config = {}}

// -----

// expected-error @+1 {{there is no CUDA kernel 'nn.magic'; kernels are attn.append, }}
plan.kernel @k "nn.magic" symbol "" images [] config "" spec {name = "nn.magic", config = {}, tile = {}}

// -----

// expected-error @+1 {{the kernel's Config has no field 'colour'}}
plan.kernel @k "nn.gather" symbol "" images [] config "" spec {name = "nn.gather", config = {}, tile = {colour = 3 : i64}}

// -----

plan.kernel @k "nn.row f" symbol "" images [] config "" spec {name = "nn.row", config = {rows = 1 : i64, cols = 16 : i64, inputs = 1 : i64, outputs = 1 : i64}, tile = {}} {
^bb0(%x: f32):
  // expected-error @+1 {{has no form in CUDA C++}}
  %y = math.atan2 %x, %x : f32
  nn.yield %y : f32
}
