// One case a message of the verifiers.
// RUN: k31-opt %s -split-input-file -verify-diagnostics

func.func @f(%l: tensor<8x4xf32>, %b: tensor<4xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{expected logits [T, E] and top_k of 1 or more}}
  %0:2 = moe.route %l bias %b live %live top_k 0 renormalize true scale 1.0 : tensor<8x4xf32>, tensor<4xf32>, tensor<1xi32>
  return
}

// -----

func.func @f(%l: tensor<8x4xbf16>, %b: tensor<4xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{logits holds 'bf16', expected 'f32'}}
  %0:2 = moe.route %l bias %b live %live top_k 2 renormalize true scale 1.0 : tensor<8x4xbf16>, tensor<4xf32>, tensor<1xi32>
  return
}

// -----

func.func @f(%l: tensor<8x4xf32>, %b: tensor<8xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{logits has 4 experts, but bias has 8 experts}}
  %0:2 = moe.route %l bias %b live %live top_k 2 renormalize true scale 1.0 : tensor<8x4xf32>, tensor<8xf32>, tensor<1xi32>
  return
}

// -----

func.func @f(%l: tensor<8x4xf32>, %b: tensor<4xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{top_k is 5, but there are 4 experts}}
  %0:2 = moe.route %l bias %b live %live top_k 5 renormalize true scale 1.0 : tensor<8x4xf32>, tensor<4xf32>, tensor<1xi32>
  return
}

// -----

func.func @f(%l: tensor<8x4xf32>, %b: tensor<4xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{bias holds 'i32', expected bf16 or f32}}
  %0:2 = moe.route %l bias %b live %live top_k 2 renormalize true scale 1.0 : tensor<8x4xf32>, tensor<4xi32>, tensor<1xi32>
  return
}

// -----

func.func @f(%x: tensor<8x64xbf16>, %i: tensor<8x2xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{expected x [T, C], ids [T, k] and experts of 1 or more}}
  %0:3 = moe.permute %x by %i live %live first 0 experts 0 : tensor<8x64xbf16>, tensor<8x2xi32>, tensor<1xi32>
  return
}

// -----

func.func @f(%x: tensor<8x64xbf16>, %i: tensor<8x2xi64>, %live: tensor<1xi32>) {
  // expected-error @below {{ids holds 'i64', expected 'i32'}}
  %0:3 = moe.permute %x by %i live %live first 0 experts 4 : tensor<8x64xbf16>, tensor<8x2xi64>, tensor<1xi32>
  return
}

// -----

func.func @f(%x: tensor<8x64xbf16>, %i: tensor<4x2xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{x has 8 rows, but ids has 4 rows}}
  %0:3 = moe.permute %x by %i live %live first 0 experts 4 : tensor<8x64xbf16>, tensor<4x2xi32>, tensor<1xi32>
  return
}

// -----

func.func @f(%x: tensor<8x64xbf16>, %i: tensor<8x2xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{the first local expert is -1, expected 0 or more}}
  %0:3 = moe.permute %x by %i live %live first -1 experts 4 : tensor<8x64xbf16>, tensor<8x2xi32>, tensor<1xi32>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x32xbf16>, %o: tensor<5xi32>) {
  // expected-error @below {{x has 64 columns, but w has 32 columns}}
  %0 = moe.grouped_linear %x, %w offsets %o : (tensor<16x64xbf16>, tensor<4x64x32xbf16>, tensor<5xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xi8>, %o: tensor<5xi32>) {
  // expected-error @below {{w holds 'i8', expected bf16 or f32}}
  %0 = moe.grouped_linear %x, %w offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xi8>, tensor<5xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xbf16>, %o: tensor<5xi32>, %s: tensor<4x64x2xf8E8M0FNU>) {
  // expected-error @below {{has scales, but w holds}}
  %0 = moe.grouped_linear %x, %w scale %s offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xbf16>, tensor<4x64x2xf8E8M0FNU>, tensor<5xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xf4E2M1FN>, %o: tensor<5xi32>) {
  // expected-error @below {{w holds f4E2M1FN, so it needs scales}}
  %0 = moe.grouped_linear %x, %w offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xf4E2M1FN>, tensor<5xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xf4E2M1FN>, %o: tensor<5xi32>, %s: tensor<4x64x2xf32>) {
  // expected-error @below {{scale holds 'f32', expected 'f8E8M0FNU'}}
  %0 = moe.grouped_linear %x, %w scale %s offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xf4E2M1FN>, tensor<4x64x2xf32>, tensor<5xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xf4E2M1FN>, %o: tensor<5xi32>, %s: tensor<4x64x4xf8E8M0FNU>) {
  // expected-error @below {{scale has shape [4, 64, 4], expected one scale for 32 columns of w, [4, 64, 64]}}
  %0 = moe.grouped_linear %x, %w scale %s offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xf4E2M1FN>, tensor<4x64x4xf8E8M0FNU>, tensor<5xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xbf16>, %o: tensor<4xi32>) {
  // expected-error @below {{has 4 offsets, expected 5 (experts + 1)}}
  %0 = moe.grouped_linear %x, %w offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xbf16>, tensor<4xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xbf16>, %o: tensor<5xi64>) {
  // expected-error @below {{offsets holds 'i64', expected 'i32'}}
  %0 = moe.grouped_linear %x, %w offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xbf16>, tensor<5xi64>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x48x64xbf16>, %o: tensor<5xi32>) {
  // expected-error @below {{an expert of w has 48 rows, but pair needs a multiple of 32}}
  %0 = moe.grouped_linear %x, %w offsets %o pair : (tensor<16x64xbf16>, tensor<4x48x64xbf16>, tensor<5xi32>) -> tensor<16x24xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xbf16>, %o: tensor<5xi32>) {
  // expected-error @below {{result has shape [16, 32], expected [16, 64]}}
  %0 = moe.grouped_linear %x, %w offsets %o : (tensor<16x64xbf16>, tensor<4x64x64xbf16>, tensor<5xi32>) -> tensor<16x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xbf16>, %o: tensor<5xi32>) {
  // expected-error @below {{expected [16, 32] (half of an expert's rows: pair)}}
  %0 = moe.grouped_linear %x, %w offsets %o pair : (tensor<16x64xbf16>, tensor<4x64x64xbf16>, tensor<5xi32>) -> tensor<16x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xbf16>, %o: tensor<5xi32>) {
  // expected-error @below {{needs an epilogue that joins the two sums of a pair}}
  %0 = moe.grouped_linear %x, %w offsets %o pair : (tensor<16x64xbf16>, tensor<4x64x64xbf16>, tensor<5xi32>) -> tensor<16x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<4x64x64xbf16>, %o: tensor<5xi32>) {
  // expected-error @below {{region has 1 arguments, expected 2 (two sums)}}
  %0 = moe.grouped_linear %x, %w offsets %o pair epilogue {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<16x64xbf16>, tensor<4x64x64xbf16>, tensor<5xi32>) -> tensor<16x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<8x2xf32>, %s: tensor<8x3xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{weights has shape [8, 2], but slot has shape [8, 3]}}
  %0 = moe.combine %x weights %w slot %s live %live : (tensor<16x64xbf16>, tensor<8x2xf32>, tensor<8x3xi32>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<8x3xf32>, %s: tensor<8x3xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{x has 16 rows, expected 24 (tokens times choices)}}
  %0 = moe.combine %x weights %w slot %s live %live : (tensor<16x64xbf16>, tensor<8x3xf32>, tensor<8x3xi32>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %s: tensor<8x3xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{x has 16 rows, expected 24 (tokens times choices)}}
  %0 = moe.combine %x slot %s live %live : (tensor<16x64xbf16>, tensor<8x3xi32>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<8x2xf32>, %s: tensor<8x2xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{result has 4 rows, but slot has 8 rows}}
  %0 = moe.combine %x weights %w slot %s live %live : (tensor<16x64xbf16>, tensor<8x2xf32>, tensor<8x2xi32>, tensor<1xi32>) -> tensor<4x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<8x2xf32>, %s: tensor<8x2xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{result has 32 columns, but x has 64 columns}}
  %0 = moe.combine %x weights %w slot %s live %live : (tensor<16x64xbf16>, tensor<8x2xf32>, tensor<8x2xi32>, tensor<1xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<8x2xbf16>, %s: tensor<8x2xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{weights holds 'bf16', expected 'f32'}}
  %0 = moe.combine %x weights %w slot %s live %live : (tensor<16x64xbf16>, tensor<8x2xbf16>, tensor<8x2xi32>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x64xbf16>, %w: tensor<8x2xf32>, %s: tensor<8x2xi64>, %live: tensor<1xi32>) {
  // expected-error @below {{slot holds 'i64', expected 'i32'}}
  %0 = moe.combine %x weights %w slot %s live %live : (tensor<16x64xbf16>, tensor<8x2xf32>, tensor<8x2xi64>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x64xbf16>, %i: tensor<8x2xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{a coordinate is one number that says which experts are local, so first must be 0, found 1 numbers and first 4}}
  %0:3 = moe.permute %x by %i live %live at %live first 4 experts 4 : tensor<8x64xbf16>, tensor<8x2xi32>, tensor<1xi32>, tensor<1xi32>
  return
}
