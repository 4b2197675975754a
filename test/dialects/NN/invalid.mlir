// One case a message of the verifiers of the ops that compute and of views.
// RUN: k31-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @below {{columns [8, 24) do not lie in}}
  %0 = nn.columns %x[8:24] : tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @below {{columns [8, 8) do not lie in}}
  %0 = nn.columns %x[8:8] : tensor<8x16xf32>
  return
}

// -----

func.func @f(%t: tensor<8xi64>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{tokens holds 'i64', expected 'i32'}}
  %0 = nn.embed %t in %w live %live : (tensor<8xi64>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%t: tensor<8xi32>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{result has 4 rows, but tokens has 8 rows}}
  %0 = nn.embed %t in %w live %live : (tensor<8xi32>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<4x32xbf16>
  return
}

// -----

func.func @f(%t: tensor<8xi32>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{result has 16 columns, but table has 32 columns}}
  %0 = nn.embed %t in %w live %live : (tensor<8xi32>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @f(%t: tensor<8xi32>, %w: tensor<64x32xf16>, %live: tensor<1xi32>) {
  // expected-error @below {{table holds 'f16', expected bf16 or f32}}
  %0 = nn.embed %t in %w live %live : (tensor<8xi32>, tensor<64x32xf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%t: tensor<8xi32>, %w: tensor<64x32xbf16>, %live: tensor<2xi32>) {
  // expected-error @below {{live is 'tensor<2xi32>', expected tensor<1xi32>}}
  %0 = nn.embed %t in %w live %live : (tensor<8xi32>, tensor<64x32xbf16>, tensor<2xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{x is 'tensor<8xbf16>', expected [T, K] of static size}}
  %0 = nn.linear %x, %w live %live : (tensor<8xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{x is 'tensor<?x32xbf16>', expected [T, K] of static size}}
  %0 = nn.linear %x, %w live %live : (tensor<?x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x7168xbf16>, %w: tensor<64x6144xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{x has 7168 columns, but w has 6144 columns}}
  %0 = nn.linear %x, %w live %live : (tensor<8x7168xbf16>, tensor<64x6144xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xi8>, %live: tensor<1xi32>) {
  // expected-error @below {{w holds 'i8', expected bf16 or f32}}
  %0 = nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<64x32xi8>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<48x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{w has 48 rows, but pair needs a multiple of 32}}
  %0 = nn.linear %x, %w live %live pair : (tensor<8x32xbf16>, tensor<48x32xbf16>, tensor<1xi32>) -> tensor<8x24xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{expected at least one result}}
  nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{result has shape [8, 32], expected [8, 64]}}
  %0 = nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{result has shape [8, 64], expected [8, 32] (half of w's rows: pair)}}
  %0 = nn.linear %x, %w live %live pair : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{result holds 'f16', expected bf16 or f32}}
  %0 = nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>, %e: tensor<7xf32>) {
  // expected-error @below {{extra operand 0 has shape [7], which does not broadcast over [8, 64]: expected [T, C], [T, 1], [C] or [G] with G dividing C}}
  %0 = nn.linear %x, %w live %live extras %e epilogue {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>, tensor<7xf32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>, %e: tensor<64xi32>) {
  // expected-error @below {{extra operand 0 holds 'i32', expected bf16 or f32}}
  %0 = nn.linear %x, %w live %live extras %e epilogue {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>, tensor<64xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{needs an epilogue}}
  %0 = nn.linear %x, %w live %live pair : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{a result begins at column 24 of the sums, expected a multiple of 16}}
  %0:2 = nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> (tensor<8x24xbf16>, tensor<8x40xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{the results have 48 columns together, but w has 64 rows}}
  %0:2 = nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x16xf32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{result has shape [4, 32], expected [8, 32]}}
  %0:2 = nn.linear %x, %w live %live : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> (tensor<4x32xbf16>, tensor<8x32xf32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>, %e: tensor<64xf32>) {
  // expected-error @below {{needs an epilogue}}
  %0 = nn.linear %x, %w live %live extras %e : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>, tensor<64xf32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{region has 1 arguments, expected 2 (two sums, then one an extra operand)}}
  %0 = nn.linear %x, %w live %live pair epilogue {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>, %e: tensor<64xf32>) {
  // expected-error @below {{region has 1 arguments, expected 2 (the sum, then one an extra operand)}}
  %0 = nn.linear %x, %w live %live extras %e epilogue {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>, tensor<64xf32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{expected a region of one block}}
  %0 = nn.linear %x, %w live %live epilogue {
  ^bb0(%a: f32):
    nn.yield %a : f32
  ^bb1:
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{argument 0 of the region is 'f64', expected f32}}
  %0 = nn.linear %x, %w live %live epilogue {
  ^bb0(%a: f64):
    %b = arith.truncf %a : f64 to f32
    nn.yield %b : f32
  } : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{expected the region to end with nn.yield}}
  %0 = nn.linear %x, %w live %live epilogue {
  ^bb0(%a: f32):
    func.return
  } : (tensor<8x32xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>, %v: f32) {
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    // expected-error @below {{yields 2 values, expected 1, one a result of 'nn.map'}}
    nn.yield %a, %a : f32, f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>, %v: f32) {
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    // expected-error @below {{uses a value from outside of the region of 'nn.map': pass it as an operand of the op}}
    %b = arith.addf %a, %v : f32
    nn.yield %b : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>, %v: f32) {
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    // expected-error @below {{cannot be in a region of 'nn.map': expected arith and math ops}}
    %b = func.call @g(%a) : (f32) -> f32
    nn.yield %b : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}
func.func private @g(f32) -> f32

// -----

func.func @f(%a: f32) {
  // expected-error @below {{expects to be in a region of 'nn.row', found 'func.func'}}
  %b = nn.sum %a : f32
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>, %v: f32) {
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    // expected-error @below {{cannot be in a region of 'nn.map': expected arith and math ops}}
    %b = nn.sum %a : f32
    nn.yield %b : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>, %v: f32) {
  %0 = nn.row ["r"] live %live(%x) {
  ^bb0(%a: f32):
    // expected-error @below {{cannot be in a region of 'nn.row': expected arith and math ops on scalars and nn.sum}}
    %b = func.call @g(%a) : (f32) -> f32
    nn.yield %b : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}
func.func private @g(f32) -> f32

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{expected at least one result}}
  nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    nn.yield 
  } : (tensor<1xi32>, tensor<8x32xf32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{results have shapes [8, 32] and [8, 16], expected one shape}}
  %0:2 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    nn.yield %a, %a : f32, f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> (tensor<8x32xf32>, tensor<8x16xf32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{result is 'tensor<8xf32>', expected [T, C] of static size}}
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{result holds 'f64', expected bf16 or f32}}
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf64>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{input 0 has shape [4, 32], which does not broadcast over [8, 32]: expected [T, C], [T, 1], [C] or [G] with G dividing C}}
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<1xi32>, tensor<4x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{5 groups do not divide the 32 columns}}
  %0 = nn.row ["r"] live %live groups 5 (%x) {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{0 groups do not divide the 32 columns}}
  %0 = nn.row ["r"] live %live groups 0 (%x) {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<12xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{input 0 has shape [12], which does not broadcast over [8, 32]: expected [T, C], [T, 1], [C], [C / groups] or [G] with G dividing C}}
  %0 = nn.row ["r"] live %live groups 4 (%x) {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<1xi32>, tensor<12xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %live: tensor<1xi32>) {
  // expected-error @below {{region has 2 arguments, expected 1 (one an input)}}
  %0 = nn.map ["m"] live %live(%x) {
  ^bb0(%a: f32, %b: f32):
    nn.yield %a : f32
  } : (tensor<1xi32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x48xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{expected one head or more, found 0}}
  %0 = nn.head_linear %x, %w live %live heads 0 rows [0, 16] transposed : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf32>
  return
}

// -----

func.func @f(%x: tensor<8x48xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{5 heads do not divide the 48 columns of x}}
  %0 = nn.head_linear %x, %w live %live heads 5 rows [0, 16] transposed : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf32>
  return
}

// -----

func.func @f(%x: tensor<8x48xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{3 heads do not divide the 64 rows of w}}
  %0 = nn.head_linear %x, %w live %live heads 3 rows [0, 16] transposed : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf32>
  return
}

// -----

func.func @f(%x: tensor<8x48xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{rows [24, 40) do not lie in the 32 rows of a head of w}}
  %0 = nn.head_linear %x, %w live %live heads 2 rows [24, 16] transposed : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf32>
  return
}

// -----

func.func @f(%x: tensor<8x48xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{reads 28 values of each head of x, which has 24}}
  %0 = nn.head_linear %x, %w live %live heads 2 rows [0, 28] transposed : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x64xf32>
  return
}

// -----

func.func @f(%x: tensor<8x48xbf16>, %w: tensor<64x32xbf16>, %live: tensor<1xi32>) {
  // expected-error @below {{result has shape [8, 32], expected [8, 64]}}
  %0 = nn.head_linear %x, %w live %live heads 2 rows [0, 16] transposed : (tensor<8x48xbf16>, tensor<64x32xbf16>, tensor<1xi32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %i: tensor<4xi64>, %live: tensor<1xi32>) {
  // expected-error @below {{index holds 'i64', expected 'i32'}}
  %0 = nn.gather %x at %i live %live : (tensor<8x32xf32>, tensor<4xi64>, tensor<1xi32>) -> tensor<4x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %i: tensor<4xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{result holds 'bf16', expected 'f32'}}
  %0 = nn.gather %x at %i live %live : (tensor<8x32xf32>, tensor<4xi32>, tensor<1xi32>) -> tensor<4x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %i: tensor<4xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{result has 8 rows, but index has 4 rows}}
  %0 = nn.gather %x at %i live %live : (tensor<8x32xf32>, tensor<4xi32>, tensor<1xi32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32>, %i: tensor<4xi32>, %live: tensor<1xi32>) {
  // expected-error @below {{result has 16 columns, but source has 32 columns}}
  %0 = nn.gather %x at %i live %live : (tensor<8x32xf32>, tensor<4xi32>, tensor<1xi32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x32xbf16>, %p: tensor<4x24xui8>, %live: tensor<1xi32>) {
  // expected-error @below {{logits holds 'bf16', expected 'f32'}}
  %0 = nn.sample %x params %p live %live : (tensor<4x32xbf16>, tensor<4x24xui8>, tensor<1xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<4x24xi8>, %live: tensor<1xi32>) {
  // expected-error @below {{params holds 'i8', expected 'ui8'}}
  %0 = nn.sample %x params %p live %live : (tensor<4x32xf32>, tensor<4x24xi8>, tensor<1xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<4x16xui8>, %live: tensor<1xi32>) {
  // expected-error @below {{params has 16 bytes a row, expected 24}}
  %0 = nn.sample %x params %p live %live : (tensor<4x32xf32>, tensor<4x16xui8>, tensor<1xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<8x24xui8>, %live: tensor<1xi32>) {
  // expected-error @below {{params has 8 rows, but logits has 4 rows}}
  %0 = nn.sample %x params %p live %live : (tensor<4x32xf32>, tensor<8x24xui8>, tensor<1xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<4x24xui8>, %live: tensor<1xi32>) {
  // expected-error @below {{result has 8 rows, but logits has 4 rows}}
  %0 = nn.sample %x params %p live %live : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<1xi32>) -> tensor<8xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<4x24xui8>, %live: tensor<1xi32>) {
  // expected-error @below {{result holds 'i64', expected 'i32'}}
  %0 = nn.sample %x params %p live %live : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<1xi32>) -> tensor<4xi64>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<4x24xui8>, %live: tensor<1xi32>, %m: tensor<4x16xui8>, %b: tensor<4x32xf32>) {
  // expected-error @below {{mask has shape [4, 16], but logits has [4, 32]}}
  %0 = nn.sample %x params %p mask %m bias %b live %live : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<4x16xui8>, tensor<4x32xf32>, tensor<1xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<4x24xui8>, %live: tensor<1xi32>, %m: tensor<4x32xui8>, %b: tensor<4x32xbf16>) {
  // expected-error @below {{bias holds 'bf16', expected 'f32'}}
  %0 = nn.sample %x params %p mask %m bias %b live %live : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<4x32xui8>, tensor<4x32xbf16>, tensor<1xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>, %p: tensor<4x24xui8>, %m: tensor<4x32xui8>, %live: tensor<1xi32>) {
  // expected-error @below {{mask and bias come together, found only the mask}}
  %0 = "nn.sample"(%x, %p, %m, %live) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>}> : (tensor<4x32xf32>, tensor<4x24xui8>, tensor<4x32xui8>, tensor<1xi32>) -> tensor<4xi32>
  return
}
