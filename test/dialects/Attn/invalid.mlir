// One case a message of the verifiers.
// RUN: k31-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{a unit of a latent cache is [256, width], found [128, 20]}}
func.func private @f(!attn.cache<latent, [128, 20], bf16>)

// -----

// expected-error @below {{a unit of a kda cache is [heads, key, value], found [2, 16]}}
func.func private @f(!attn.cache<kda, [2, 16], f32>)

// -----

// expected-error @below {{a unit of a conv cache is [taps - 1, channels], found [3]}}
func.func private @f(!attn.cache<conv, [3], f32>)

// -----

// expected-error @below {{a kda cache holds f32, found 'bf16'}}
func.func private @f(!attn.cache<kda, [2, 16, 16], bf16>)

// -----

// expected-error @below {{a index cache holds bf16, f32 or i8, found 'f8E4M3FN'}}
func.func private @f(!attn.cache<index, [256, 16], f8E4M3FN>)

// -----

// expected-error @below {{only a latent cache of f8E4M3FN names its codes, found 16}}
func.func private @f(!attn.cache<index, [256, 16], i8 codes 16>)

// -----

// expected-error @below {{a conv cache holds bf16 or f32, found 'f8E4M3FN'}}
func.func private @f(!attn.cache<conv, [3, 16], f8E4M3FN>)

// -----

// expected-error @below {{a latent row of 20 values has a multiple of 4 of them as codes and an even rest, found 18 codes}}
func.func private @f(!attn.cache<latent, [256, 20], f8E4M3FN codes 18>)

// -----

// expected-error @below {{a latent row of 21 values has a multiple of 4 of them as codes and an even rest, found 16 codes}}
func.func private @f(!attn.cache<latent, [256, 21], f8E4M3FN codes 16>)

// -----

func.func @f(%x: tensor<8x8xbf16>, %c: !attn.cache<latent, [256, 20], f8E4M3FN codes 16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{columns [8, 16) are a part of the 16 codes of a cache row, which are written together}}
  attn.append %x to %c at 8, %b : tensor<8x8xbf16>, !attn.cache<latent, [256, 20], f8E4M3FN codes 16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

// expected-error @below {{a batch has 1 or more rows, segments and blocks, found 2 rows, 0 segments, 1 blocks}}
func.func private @f(!attn.batch<rows = 2, segments = 0, blocks = 1>)

// -----

// expected-error @below {{expected ascending layer numbers as members, found [3, 3]}}
attn.pool @p members [3, 3] : !attn.cache<latent, [256, 20], bf16>

// -----

// expected-error @below {{expected ascending layer numbers as members, found []}}
attn.pool @p members [] : !attn.cache<latent, [256, 20], bf16>

// -----

func.func @f(%l: index) {
  // expected-error @below {{@p is not an attn.pool}}
  %0 = attn.cache @p[%l] : !attn.cache<latent, [256, 20], bf16>
  return
}

// -----

attn.pool @p members [3] : !attn.cache<index, [256, 16], bf16>
func.func @f(%l: index) {
  // expected-error @below {{but @p has type '!attn.cache<index, [256, 16], bf16>'}}
  %0 = attn.cache @p[%l] : !attn.cache<latent, [256, 20], bf16>
  return
}

// -----

func.func @f(%x: tensor<4x16xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{x has 4 rows, but the batch has 8 rows}}
  attn.append %x to %c at 0, %b : tensor<4x16xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%x: tensor<8x16xbf16>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{cache is a cache of kind kda, expected latent or index}}
  attn.append %x to %c at 0, %b : tensor<8x16xbf16>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%x: tensor<8x16xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{columns [8, 24) do not lie in the 20 columns of a cache row}}
  attn.append %x to %c at 8, %b : tensor<8x16xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%x: tensor<8x16xi8>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{x holds 'i8', expected bf16 or f32}}
  attn.append %x to %c at 0, %b : tensor<8x16xi8>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<16x4xf32>, %c: !attn.cache<conv, [3, 32], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{x has 32 channels, but w has 16 channels}}
  %0 = attn.short_conv %x, %w window %c, %b : (tensor<8x32xbf16>, tensor<16x4xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<32x4xf32>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{window is a cache of kind latent, expected conv}}
  %0 = attn.short_conv %x, %w window %c, %b : (tensor<8x32xbf16>, tensor<32x4xf32>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<32x3xf32>, %c: !attn.cache<conv, [3, 32], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{window has units of shape [3, 32], expected [2, 32]}}
  %0 = attn.short_conv %x, %w window %c, %b : (tensor<8x32xbf16>, tensor<32x3xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<32x4xf32>, %c: !attn.cache<conv, [3, 32], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{result has 16 columns, expected 32}}
  %0 = attn.short_conv %x, %w window %c, %b : (tensor<8x32xbf16>, tensor<32x4xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<32x4xf32>, %c: !attn.cache<conv, [3, 32], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{result has 4 rows, but the batch has 8 rows}}
  %0 = attn.short_conv %x, %w window %c, %b : (tensor<8x32xbf16>, tensor<32x4xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<4x32xf32>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<32x4xf32>, %c: !attn.cache<conv, [3, 32], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{region has 2 arguments, expected 1 (the sum)}}
  %0 = attn.short_conv %x, %w window %c, %b epilogue {
  ^bb0(%a: f32, %d: f32):
    nn.yield %a : f32
  } : (tensor<8x32xbf16>, tensor<32x4xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{expected one head or more, found 0}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 0 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{3 heads do not divide the 32 columns of q}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 3 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x16xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{k has 16 columns, expected 32}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x16xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{v holds 'f32', expected 'bf16'}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xbf16>, %be: tensor<8x2xf32>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{decay holds 'bf16', expected 'f32'}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x4xf32>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{beta has 4 columns, expected 2}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x4xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x2xbf16>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{beta holds 'bf16', expected 'f32'}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xbf16>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %c: !attn.cache<conv, [3, 32], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{state is a cache of kind conv, expected kda}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<conv, [3, 32], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %c: !attn.cache<kda, [4, 8, 8], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{state has units of shape [4, 8, 8], expected [2, 16, 16]}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 16
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [4, 8, 8], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %k: tensor<8x32xbf16>, %v: tensor<8x32xbf16>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %c: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{expected a chunk of one token or more, found 0}}
  %0 = attn.kda %q, %k, %v decay %g beta %be state %c, %b heads 2 chunk 0
    : (tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xbf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<conv, [3, 96], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{state is a cache of kind conv, expected kda}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<conv, [3, 96], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{state has units of shape [2, 16, 16], expected [4, 16, 16]}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 4 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x32xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{x has 32 columns, expected 96}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x32xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x16xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{decay has 16 columns, expected 32}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x16xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xbf16>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{beta holds 'bf16', expected 'f32'}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xbf16>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x3xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{window has units of shape [3, 96], expected [2, 96]}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x3xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{q, k and v would be rounded to 'f16', expected f32 or bf16}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded f16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{the recurrence's result is argument 2 of the region, expected 0 to 1}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 2 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{result has 16 columns, expected 32}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<24xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{input 0 has shape [24], which does not broadcast over [8, 32]}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<24xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{region has 1 arguments, expected 2 (one an input, and the recurrence's result)}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%x: tensor<8x96xbf16>, %w: tensor<96x4xf32>, %g: tensor<8x32xf32>, %be: tensor<8x2xf32>, %m: tensor<16xf32>, %c: !attn.cache<conv, [3, 96], bf16>, %s: !attn.cache<kda, [2, 16, 16], f32>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{region has 2 arguments, expected 1 (the sum)}}
  %0 = attn.kda_decode ["norm"] of %x, %w window %c decay %g beta %be state %s, %b heads 2 rounded bf16, bf16 at 0 (%m) {
  ^bb0(%o: f32, %u: f32):
    %v = nn.sum %o : f32
    nn.yield %v : f32
  } activation {
  ^bb0(%a: f32, %d: f32):
    nn.yield %a : f32
  } : (tensor<8x96xbf16>, tensor<96x4xf32>, !attn.cache<conv, [3, 96], bf16>, tensor<8x32xf32>, tensor<8x2xf32>, !attn.cache<kda, [2, 16, 16], f32>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<16xf32>) -> tensor<8x32xbf16>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %w: tensor<8x2xf32>, %c: !attn.cache<index, [256, 16], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{expected q [T, heads * head_dim] and top_k of 1 or more}}
  %0 = attn.index_select %q weights %w keys %c, %b heads 2 top_k 0 : tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %w: tensor<8x4xf32>, %c: !attn.cache<index, [256, 16], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{weights has 4 columns, expected 2}}
  %0 = attn.index_select %q weights %w keys %c, %b heads 2 top_k 6 : tensor<8x32xbf16>, tensor<8x4xf32>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %w: tensor<8x2xf32>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{keys is a cache of kind latent, expected index}}
  %0 = attn.index_select %q weights %w keys %c, %b heads 2 top_k 6 : tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%q: tensor<8x16xbf16>, %w: tensor<8x2xf32>, %c: !attn.cache<index, [256, 16], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{keys has units of shape [256, 16], expected [256, 8]}}
  %0 = attn.index_select %q weights %w keys %c, %b heads 2 top_k 6 : tensor<8x16xbf16>, tensor<8x2xf32>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%q: tensor<8x32xbf16>, %w: tensor<8x2xf32>, %c: !attn.cache<index, [256, 16], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{3 heads do not divide the 32 columns of q}}
  %0 = attn.index_select %q weights %w keys %c, %b heads 3 top_k 6 : tensor<8x32xbf16>, tensor<8x2xf32>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%q: tensor<8x64xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{q_latent has 32 values a head, but a cache row has 20}}
  %0 = attn.attend %q, %s cache %c, %b heads 2 shared_begin 8 scale 0.25
    : (tensor<8x64xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<index, [256, 16], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{cache is a cache of kind index, expected latent}}
  %0 = attn.attend %q, %s cache %c, %b heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<index, [256, 16], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{values [10, 14) of a head do not lie in the 12 values of a head of q_shared (a cache row holds 16 + 4)}}
  %0 = attn.attend %q, %s cache %c, %b heads 2 shared_begin 10 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{result has 16 columns, expected 32}}
  %0 = attn.attend %q, %s cache %c, %b heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>, %i: tensor<8x6xi64>) {
  // expected-error @below {{selected holds 'i64', expected 'i32'}}
  %0 = attn.attend %q, %s cache %c, %b selected %i heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<8x6xi64>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>, %i: tensor<4x6xi32>) {
  // expected-error @below {{selected has 4 rows, but the batch has 8 rows}}
  %0 = attn.attend %q, %s cache %c, %b selected %i heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<4x6xi32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{log-sum-exp has 4 columns, expected 2}}
  %0:2 = attn.attend %q, %s cache %c, %b heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> (tensor<8x32xf32>, tensor<8x4xf32>)
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{log-sum-exp holds 'bf16', expected 'f32'}}
  %0:2 = attn.attend %q, %s cache %c, %b heads 2 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> (tensor<8x32xf32>, tensor<8x2xbf16>)
  return
}

// -----

func.func @f(%q: tensor<8x32xf32>, %s: tensor<8x24xbf16>, %c: !attn.cache<latent, [256, 20], bf16>, %b: !attn.batch<rows = 8, segments = 2, blocks = 4>) {
  // expected-error @below {{5 heads do not divide the 32 columns of q_latent}}
  %0 = attn.attend %q, %s cache %c, %b heads 5 shared_begin 8 scale 0.25
    : (tensor<8x32xf32>, tensor<8x24xbf16>, !attn.cache<latent, [256, 20], bf16>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> tensor<8x32xf32>
  return
}

// -----

func.func @f(%b: !attn.batch<rows = 8, segments = 2, blocks = 4>, %c: tensor<1xi32>) {
  // expected-error @below {{row_segment is 'tensor<3xi32>', expected a share of the 8 rows}}
  %0:3 = attn.batch_rows %b at %c : (!attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<1xi32>) -> (tensor<4xi32>, tensor<2x6xi32>, tensor<3xi32>)
  return
}

// -----

func.func @f(%b: !attn.batch<rows = 8, segments = 2, blocks = 4>, %c: tensor<1xi32>) {
  // expected-error @below {{segments is 'tensor<3x6xi32>', expected i32 of shape [2, 6]}}
  %0:3 = attn.batch_rows %b at %c : (!attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<1xi32>) -> (tensor<4xi32>, tensor<3x6xi32>, tensor<4xi32>)
  return
}

// -----

func.func @f(%b: !attn.batch<rows = 8, segments = 2, blocks = 4>, %c: tensor<2xi32>) {
  // expected-error @below {{coordinate is 'tensor<2xi32>', expected i32 of shape [1]}}
  %0:3 = attn.batch_rows %b at %c : (!attn.batch<rows = 8, segments = 2, blocks = 4>, tensor<2xi32>) -> (tensor<4xi32>, tensor<2x6xi32>, tensor<4xi32>)
  return
}

// -----

func.func @f(%b: !attn.batch<rows = 8, segments = 2, blocks = 4>, %n: tensor<4xi32>, %s: tensor<2x6xi32>, %r: tensor<4xi32>) {
  // expected-error @below {{row_segment is 'tensor<4xi32>', expected i32 of shape [8]}}
  %0 = attn.batch_of %n, %s, %r table %b : (tensor<4xi32>, tensor<2x6xi32>, tensor<4xi32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> !attn.batch<rows = 8, segments = 2, blocks = 4>
  return
}

// -----

func.func @f(%b: !attn.batch<rows = 8, segments = 2, blocks = 4>, %n: tensor<4xi32>, %s: tensor<2x6xi32>, %r: tensor<4xi32>) {
  // expected-error @below {{expected the segments and blocks of}}
  %0 = attn.batch_of %n, %s, %r table %b : (tensor<4xi32>, tensor<2x6xi32>, tensor<4xi32>, !attn.batch<rows = 8, segments = 2, blocks = 4>) -> !attn.batch<rows = 4, segments = 2, blocks = 3>
  return
}
