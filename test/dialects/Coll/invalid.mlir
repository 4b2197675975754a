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
  // expected-error @below {{3 ranks do not divide the 8 rows}}
  %0:2 = coll.own_rows %x live %l at %l size 3 : tensor<8x32xbf16>, tensor<1xi32>, tensor<1xi32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<2xi32>) {
  // expected-error @below {{expected x [T, N] and one i32 as live and coordinate}}
  %0:2 = coll.own_rows %x live %l at %l size 2 : tensor<8x32xbf16>, tensor<2xi32>, tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<4x32xbf16>, %i: tensor<4x2xi32>, %w: tensor<4x2xf32>, %l: tensor<1xi32>) {
  // expected-error @below {{expected ui8 [4, 336]: 4 rows of 32 values and 2 choices}}
  %0:3 = coll.pack %x by %i, %w live %l size 4 share 7
    : (tensor<4x32xbf16>, tensor<4x2xi32>, tensor<4x2xf32>, tensor<1xi32>) -> (tensor<4x320xui8>, tensor<4xi32>, tensor<4x4xi32>)
  return
}

// -----

func.func @f(%x: tensor<4x32xbf16>, %i: tensor<4x2xi32>, %w: tensor<4x3xf32>, %l: tensor<1xi32>) {
  // expected-error @below {{ids has 2 choices, but weights has 3 choices}}
  %0:3 = coll.pack %x by %i, %w live %l size 4 share 7
    : (tensor<4x32xbf16>, tensor<4x2xi32>, tensor<4x3xf32>, tensor<1xi32>) -> (tensor<4x336xui8>, tensor<4xi32>, tensor<4x4xi32>)
  return
}

// -----

func.func @f(%x: tensor<4x32xbf16>, %i: tensor<4x2xi32>, %w: tensor<4x2xf32>, %l: tensor<1xi32>) {
  // expected-error @below {{units and slot are for 4 and 3 ranks, expected 4}}
  %0:3 = coll.pack %x by %i, %w live %l size 4 share 7
    : (tensor<4x32xbf16>, tensor<4x2xi32>, tensor<4x2xf32>, tensor<1xi32>) -> (tensor<4x336xui8>, tensor<4xi32>, tensor<4x3xi32>)
  return
}

// -----

func.func @f(%p: tensor<3x336xui8>) {
  // expected-error @below {{has 16 rows of 3 ranks, which do not divide them}}
  %0:4 = coll.unpack %p : (tensor<3x336xui8>) -> (tensor<16x32xbf16>, tensor<16x2xi32>, tensor<16x2xf32>, tensor<3xi32>)
  return
}

// -----

func.func @f(%p: tensor<4x336xui8>, %l: tensor<2xi32>) {
  // expected-error @below {{expected live i32 [4], found 'tensor<2xi32>'}}
  %0 = coll.dispatch %p live %l over ep size 4 unit 16 : tensor<4x336xui8>, tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<6x32xbf16>, %l: tensor<4xi32>) {
  // expected-error @below {{expected pieces for 4 ranks, found 'tensor<6x32xbf16>'}}
  %0 = coll.combine %x live %l over ep size 4 unit 64 : tensor<6x32xbf16>, tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{sum has shape [2, 32], x [8, 32]; expected the same}}
  %0:2 = coll.sum_row ["f"] of %x over tp size 4 at 0 live %l () {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<2x32xbf16>, tensor<2x32xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{sum has shape [8, 32], x [8, 32]; expected a share of its rows}}
  %0:2 = coll.sum_row ["f"] of %x over tp size 4 scatter at 0 live %l () {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x32xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{sum holds 'f32', expected 'bf16'}}
  %0:2 = coll.sum_row ["f"] of %x over tp size 4 at 0 live %l () {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xf32>, tensor<8x32xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{expected at least one result behind the sum}}
  %0:1 = coll.sum_row ["f"] of %x over tp size 4 at 0 live %l () {
  ^bb0(%a: f32):
    nn.yield
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{a result has shape [8, 16], the sum [8, 32], expected one shape}}
  %0:2 = coll.sum_row ["f"] of %x over tp size 4 at 0 live %l () {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x16xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{the sum is argument 1 of the region, expected 0 to 0}}
  %0:2 = coll.sum_row ["f"] of %x over tp size 4 at 1 live %l () {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x32xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>) {
  // expected-error @below {{5 groups do not divide the 32 columns}}
  %0:2 = coll.sum_row ["f"] of %x over tp size 4 at 0 live %l groups 5 () {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>) -> (tensor<8x32xbf16>, tensor<8x32xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xi32>, %y: tensor<8x32xbf16>) {
  // expected-error @below {{one an input, and the sum}}
  %0:2 = coll.sum_row ["f"] of %x over tp size 4 at 0 live %l (%y) {
  ^bb0(%a: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<1xi32>, tensor<8x32xbf16>) -> (tensor<8x32xbf16>, tensor<8x32xbf16>)
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %l: tensor<1xf32>) {
  // expected-error @below {{live is 'tensor<1xf32>', expected tensor<1xi32>}}
  %0 = coll.join %x live %l size 4 : (tensor<8x32xbf16>, tensor<1xf32>) -> tensor<2x128xbf16>
  return
}
