// One case a message of the verifiers.
// RUN: k31-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<8x32xbf16>) {
  // expected-error @below {{expected a size of 1 or more ranks, found 0}}
  %0 = coll.all_reduce %x over tp size 0 : tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>) {
  // expected-error @below {{expected a size of 1 or more ranks, found 0}}
  %0 = coll.reduce_scatter %x over tp size 0 : tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>) {
  // expected-error @below {{expected a size of 1 or more ranks, found 0}}
  %0 = coll.all_gather %x over tp size 0 : tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>) {
  // expected-error @below {{expected a size of 1 or more ranks, found 0}}
  %0 = coll.broadcast %x over tp size 0 : tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>) {
  // expected-error @below {{3 ranks do not divide the 8 rows}}
  %0 = coll.reduce_scatter %x over tp size 3 : tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xbf16>) {
  // expected-error @below {{expected rows [T, C] or elements [T], found 'tensor<2x8x4xbf16>'}}
  %0 = coll.all_reduce %x over tp size 2 : tensor<2x8x4xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %i: tensor<4x2xi32>) {
  // expected-error @below {{x has 8 rows, but ids has 4 rows}}
  %0:3 = coll.dispatch %x by %i over ep size 2 capacity 16
    : (tensor<8x32xbf16>, tensor<4x2xi32>) -> (tensor<16x32xbf16>, tensor<16x2xi32>, tensor<16xi32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %i: tensor<8x2xi32>) {
  // expected-error @below {{a result has 16 rows, expected the capacity of 32}}
  %0:3 = coll.dispatch %x by %i over ep size 2 capacity 32
    : (tensor<8x32xbf16>, tensor<8x2xi32>) -> (tensor<16x32xbf16>, tensor<16x2xi32>, tensor<16xi32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %i: tensor<8x2xi32>) {
  // expected-error @below {{expected a size of 1 or more ranks, found 0}}
  %0:3 = coll.dispatch %x by %i over ep size 0 capacity 16
    : (tensor<8x32xbf16>, tensor<8x2xi32>) -> (tensor<16x32xbf16>, tensor<16x2xi32>, tensor<16xi32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %i: tensor<8x2xi32>) {
  // expected-error @below {{rows has 16 columns, but x has 32 columns}}
  %0:3 = coll.dispatch %x by %i over ep size 2 capacity 16
    : (tensor<8x32xbf16>, tensor<8x2xi32>) -> (tensor<16x16xbf16>, tensor<16x2xi32>, tensor<16xi32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %i: tensor<8x2xi32>) {
  // expected-error @below {{row ids has 1 columns, but ids has 2 columns}}
  %0:3 = coll.dispatch %x by %i over ep size 2 capacity 16
    : (tensor<8x32xbf16>, tensor<8x2xi32>) -> (tensor<16x32xbf16>, tensor<16x1xi32>, tensor<16xi32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %i: tensor<8x2xi32>) {
  // expected-error @below {{rows holds 'f32', expected 'bf16'}}
  %0:3 = coll.dispatch %x by %i over ep size 2 capacity 16
    : (tensor<8x32xbf16>, tensor<8x2xi32>) -> (tensor<16x32xf32>, tensor<16x2xi32>, tensor<16xi32>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %i: tensor<8x2xi32>) {
  // expected-error @below {{source holds 'i64', expected 'i32'}}
  %0:3 = coll.dispatch %x by %i over ep size 2 capacity 16
    : (tensor<8x32xbf16>, tensor<8x2xi32>) -> (tensor<16x32xbf16>, tensor<16x2xi32>, tensor<16xi64>)
  return
}

// -----

func.func @f(%x: tensor<16x32xbf16>, %s: tensor<8xi32>) {
  // expected-error @below {{x has 16 rows, but source has 8 rows}}
  %0 = coll.combine %x from %s over ep size 2 : (tensor<16x32xbf16>, tensor<8xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x32xbf16>, %s: tensor<16xi32>) {
  // expected-error @below {{result has 16 columns, but x has 32 columns}}
  %0 = coll.combine %x from %s over ep size 2 : (tensor<16x32xbf16>, tensor<16xi32>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x32xbf16>, %s: tensor<16xi32>) {
  // expected-error @below {{expected a size of 1 or more ranks, found -1}}
  %0 = coll.combine %x from %s over ep size -1 : (tensor<16x32xbf16>, tensor<16xi32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x32xbf16>, %s: tensor<16xi32>) {
  // expected-error @below {{result holds 'f32', expected 'bf16'}}
  %0 = coll.combine %x from %s over ep size 2 : (tensor<16x32xbf16>, tensor<16xi32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>) {
  // expected-error @below {{expected a coordinate of 0 or more as peer, found -1}}
  coll.send %x to -1 over pp : tensor<8x32xbf16>
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected a coordinate of 0 or more as peer, found -1}}
  %0 = coll.recv from -1 over pp : tensor<8x32xbf16>
  return
}

// -----

func.func @f() {
  // expected-error @below {{rows is 'tensor<?x32xbf16>', expected [T, C] of static size}}
  %0 = coll.recv from 0 over pp : tensor<?x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{x has 8 rows, expected 4 times the 3 of the result}}
  %0 = coll.join %x live %l size 4 : (tensor<8x32xbf16>, tensor<1xi32>) -> tensor<3x128xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{result has 96 columns, expected more than 96 and at most 128: 4 parts of 32}}
  %0 = coll.join %x live %l size 4 : (tensor<8x32xbf16>, tensor<1xi32>) -> tensor<2x96xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{a part has 48 columns, but x has 32}}
  %0 = coll.part %x live %l at %l : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x48xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>, %two: tensor<2xi32>) {
  // expected-error @below {{coordinate has 2 numbers, expected one}}
  %0 = coll.part %x live %l at %two : (tensor<8x32xbf16>, tensor<1xi32>, tensor<2xi32>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{a share of 3 rows does not divide the 8 of x}}
  %0 = coll.rows %x live %l at %l : (tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>) -> tensor<3x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>, %two: tensor<2xi32>) {
  // expected-error @below {{coordinate has 2 numbers, expected one}}
  %0 = coll.rows %x live %l at %two : (tensor<8x32xbf16>, tensor<1xi32>, tensor<2xi32>) -> tensor<4x32xbf16>
  return
}
