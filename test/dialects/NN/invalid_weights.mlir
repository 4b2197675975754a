// One case a message of the verifiers of weights: tensors, stacks and their members.
// RUN: k31-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected a static shape}}
nn.tensor @t "a" members [] files [0] offsets [0] : tensor<?x4xf32>

// -----

// expected-error @below {{has 2 members, but its pattern has no {} for the member}}
nn.tensor @t "a" members [0, 1] files [0] offsets [0, 8] : tensor<4xf32>

// -----

// expected-error @below {{pattern has 2 placeholders, expected at most 1 (expert)}}
nn.tensor @t "{}.{}" members [] files [0] offsets [0] : tensor<4x4xf32>

// -----

// expected-error @below {{needs a leading expert dimension}}
nn.tensor @t "{}.{}" members [0] files [0] offsets [0] : tensor<4xf32>

// -----

// expected-error @below {{expected ascending members, found [1, 0]}}
nn.tensor @t "{}" members [1, 0] files [0] offsets [0, 8] : tensor<4xf32>

// -----

// expected-error @below {{has 3 offsets, expected 4 (members times experts)}}
nn.tensor @t "{}.{}" members [0, 1] files [0] offsets [0, 1, 2] : tensor<2x4xf32>

// -----

// expected-error @below {{has 3 files, expected 1 or 2 (members times experts)}}
nn.tensor @t "{}" members [0, 1] files [0, 0, 0] offsets [0, 1] : tensor<4xf32>

// -----

// expected-error @below {{has a negative offset}}
nn.tensor @t "{}" members [0, 1] files [0] offsets [0, -1] : tensor<4xf32>

// -----

// expected-error @below {{expected a static shape of rank 1 or more}}
nn.stack @s [@a] rows [32] : tensor<f32>

// -----

// expected-error @below {{expected at least one part}}
nn.stack @s [] rows [] : tensor<4xf32>

// -----

// expected-error @below {{has 1 row counts, but 2 parts}}
nn.stack @s [@a, @a] rows [32] : tensor<32x4xf32>

// -----

// expected-error @below {{expected at least one row of each part, found 0}}
nn.stack @s [@a] rows [0] : tensor<32x4xf32>

// -----

// expected-error @below {{expected interleave of 0 or more, found -1}}
nn.stack @s [@a, @a] rows [32, 32] interleave -1 : tensor<64x4xf32>

// -----

// expected-error @below {{interleave needs two or more parts of equal rows, found rows [32, 16]}}
nn.stack @s [@a, @a] rows [32, 16] interleave 16 : tensor<48x4xf32>

// -----

// expected-error @below {{interleave needs two or more parts of equal rows, found rows [32]}}
nn.stack @s [@a] rows [32] interleave 16 : tensor<32x4xf32>

// -----

// expected-error @below {{interleave 24 does not divide the 32 rows of a part}}
nn.stack @s [@a, @a] rows [32, 32] interleave 24 : tensor<64x4xf32>

// -----

// expected-error @below {{part @missing is not an nn.tensor}}
nn.stack @s [@missing] rows [32] : tensor<32x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [2] files [0] offsets [0] : tensor<32x4xf32>
// expected-error @below {{part @b has members [2], but @a has [0, 1]}}
nn.stack @s [@a, @b] rows [32, 32] : tensor<64x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
// expected-error @below {{part @a holds 'f32', but the stack holds 'bf16'}}
nn.stack @s [@a] rows [32] : tensor<32x4xbf16>

// -----

nn.tensor @e "e.{}.{}" members [0] files [0] offsets [0, 8] : tensor<2x32x4xf32>
// expected-error @below {{part @e has 2 experts, but the stack's type is}}
nn.stack @s [@e] rows [32] : tensor<3x32x4xf32>

// -----

nn.tensor @z "z" members [] files [0] offsets [0] : tensor<f32>
// expected-error @below {{part @z is a scalar}}
nn.stack @s [@z] rows [1] : tensor<1xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
// expected-error @below {{part @a has rows of shape [4], but the stack has rows of shape [8]}}
nn.stack @s [@a] rows [32] : tensor<32x8xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
// expected-error @below {{uses 33 rows of part @a, which has 32}}
nn.stack @s [@a] rows [33] : tensor<33x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
// expected-error @below {{the parts give 64 rows, but the type has 63}}
nn.stack @s [@a, @a] rows [32, 32] : tensor<63x4xf32>

// -----

func.func @f(%l: index) {
  // expected-error @below {{@s is not an nn.stack}}
  %0 = nn.weight @s[%l] : tensor<32x4xf32>
  return
}

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.tensor @b "b" members [] files [0] offsets [0] : tensor<8xf32>
nn.stack @v [@b] rows [8] : tensor<8xf32>
func.func @f(%l: index) {
  // expected-error @below {{has type 'tensor<16x4xf32>', but @s has type 'tensor<32x4xf32>'}}
  %0 = nn.weight @s[%l] : tensor<16x4xf32>
  return
}

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.tensor @b "b" members [] files [0] offsets [0] : tensor<8xf32>
nn.stack @v [@b] rows [8] : tensor<8xf32>
func.func @f() {
  // expected-error @below {{@s has one member a layer: expected `[%layer]`}}
  %0 = nn.weight @s : tensor<32x4xf32>
  return
}

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.tensor @b "b" members [] files [0] offsets [0] : tensor<8xf32>
nn.stack @v [@b] rows [8] : tensor<8xf32>
func.func @f(%l: index) {
  // expected-error @below {{@v has no members, so it takes no layer}}
  %0 = nn.weight @v[%l] : tensor<8xf32>
  return
}

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
// expected-error @below {{shares out the members of part @a, which has no experts}}
nn.stack @s [@a] rows [32] shard ep members : tensor<32x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
// expected-error @below {{part @a has rows of shape [4], but the stack has rows of shape [8]}}
nn.stack @s [@a] rows [32] shard tp columns : tensor<32x8xf32>

// -----

nn.tensor @e "e.{}.{}" members [0] files [0] offsets [0, 8] : tensor<2x32x4xf32>
// expected-error @below {{part @e has 2 experts, but the stack's type is}}
nn.stack @s [@e] rows [32] shard ep members : tensor<3x32x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
// expected-error @below {{expected two stacks or more, found 1}}
nn.merged_stack @m [@s] : tensor<32x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
// expected-error @below {{@a is not an nn.stack}}
nn.merged_stack @m [@s, @a] : tensor<64x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
// expected-error @below {{the stacks give 48 rows, but the type has 64}}
nn.merged_stack @m [@s, @t] : tensor<64x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
// expected-error @below {{expected rows of one shape, [N, K], found 'tensor<192xf32>'}}
nn.merged_stack @m [@s, @t] : tensor<192xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
nn.stack @o [@b] rows [32] : tensor<32x4xf32>
// expected-error @below {{@o has members [0], but the first stack has [0, 1]}}
nn.merged_stack @m [@s, @o] : tensor<64x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
nn.stack @o [@a] rows [32] shard tp columns : tensor<32x2xf32>
// expected-error @below {{@o has type 'tensor<32x2xf32>', whose rows are not those of 'tensor<64x4xf32>'}}
nn.merged_stack @m [@s, @o] : tensor<64x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
nn.stack @o [@a, @a] rows [32, 32] interleave 16 : tensor<64x4xf32>
// expected-error @below {{@o interleaves its parts}}
nn.merged_stack @m [@s, @o] : tensor<96x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
// expected-error @below {{@s is already part of @m}}
nn.merged_stack @m [@s, @s] : tensor<64x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
nn.stack @u [@a] rows [8] : tensor<8x4xf32>
nn.merged_stack @m [@s, @t] : tensor<48x4xf32>
// expected-error @below {{@t is already part of @m}}
nn.merged_stack @n [@u, @t] : tensor<24x4xf32>

// -----

nn.tensor @a "a.{}.{}" members [0, 1] files [0] offsets [0, 8, 16, 24] : tensor<2x4xf32>
nn.stack @s [@a] rows [4] : tensor<2x4xf32>
nn.stack @t [@a] rows [2] : tensor<2x2xf32>
// expected-error @below {{@s has experts}}
nn.merged_stack @m [@s, @t] : tensor<4x4xf32>

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
nn.merged_stack @m [@s, @t] : tensor<48x4xf32>
func.func @f(%l: index) {
  // expected-error @below {{has type 'tensor<32x4xf32>', but @m has type 'tensor<48x4xf32>'}}
  %0 = nn.weight @m[%l] : tensor<32x4xf32>
  return
}

// -----

nn.tensor @a "a.{}" members [0, 1] files [0] offsets [0, 8] : tensor<32x4xf32>
nn.tensor @b "b.{}" members [0] files [0] offsets [0] : tensor<32x4xf32>
nn.stack @s [@a] rows [32] : tensor<32x4xf32>
nn.stack @t [@a] rows [16] : tensor<16x4xf32>
nn.merged_stack @m [@s, @t] : tensor<48x4xf32>
func.func @f() {
  // expected-error @below {{@m has one member a layer: expected `[%layer]`}}
  %0 = nn.weight @m : tensor<48x4xf32>
  return
}
