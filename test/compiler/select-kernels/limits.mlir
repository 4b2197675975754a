// What the host kernels hold on their stacks is refused by name, found value and limit; the same shapes are no fault on a GPU's
// side, whose kernels have limits of their own.
// RUN: k31-opt %s -select-kernels -split-input-file -verify-diagnostics

!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @heads(%q: tensor<1x4128xf32>, %w: tensor<1x129xf32>, %b: !batch, %l: index) -> tensor<1x8xi32> {
  %c = attn.cache @index[%l] : !attn.cache<index, [256, 32], f32>
  // expected-error @below {{has heads = 129; the host kernel of attn.index_select takes 1 to 128}}
  %r = attn.index_select %q weights %w keys %c, %b heads 129 top_k 8
    : tensor<1x4128xf32>, tensor<1x129xf32>, !attn.cache<index, [256, 32], f32>, !batch
  return %r : tensor<1x8xi32>
}
attn.pool @index members [0] : !attn.cache<index, [256, 32], f32>

// -----

!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @dim(%q: tensor<1x520xf32>, %w: tensor<1x2xf32>, %b: !batch, %l: index) -> tensor<1x8xi32> {
  %c = attn.cache @index[%l] : !attn.cache<index, [256, 260], f32>
  // expected-error @below {{has head_dim = 260; the host kernel of attn.index_select takes 1 to 256}}
  %r = attn.index_select %q weights %w keys %c, %b heads 2 top_k 8
    : tensor<1x520xf32>, tensor<1x2xf32>, !attn.cache<index, [256, 260], f32>, !batch
  return %r : tensor<1x8xi32>
}
attn.pool @index members [0] : !attn.cache<index, [256, 260], f32>

// -----

// Both fit alone; 124 heads of 144 values do not fit together.
!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @query(%q: tensor<1x17424xf32>, %w: tensor<1x121xf32>, %b: !batch, %l: index) -> tensor<1x8xi32> {
  %c = attn.cache @index[%l] : !attn.cache<index, [256, 144], f32>
  // expected-error @below {{has heads x head_dim, rounded up = 17856; the host kernel of attn.index_select takes 1 to 16384}}
  %r = attn.index_select %q weights %w keys %c, %b heads 121 top_k 8
    : tensor<1x17424xf32>, tensor<1x121xf32>, !attn.cache<index, [256, 144], f32>, !batch
  return %r : tensor<1x8xi32>
}
attn.pool @index members [0] : !attn.cache<index, [256, 144], f32>

// -----

!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @kda(%q: tensor<1x48xf32>, %g: tensor<1x48xf32>, %beta: tensor<1x2xf32>, %b: !batch, %l: index) -> tensor<1x48xf32> {
  %c = attn.cache @pool[%l] : !attn.cache<kda, [2, 24, 24], f32>
  // expected-error @below {{has head_dim = 24; the host kernel of attn.kda takes multiples of 16 up to 256}}
  %r = attn.kda %q, %q, %q decay %g beta %beta state %c, %b heads 2 chunk 1
    : (tensor<1x48xf32>, tensor<1x48xf32>, tensor<1x48xf32>, tensor<1x48xf32>, tensor<1x2xf32>, !attn.cache<kda, [2, 24, 24], f32>, !batch) -> tensor<1x48xf32>
  return %r : tensor<1x48xf32>
}
attn.pool @pool members [0] : !attn.cache<kda, [2, 24, 24], f32>

// -----

!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @large_kda(%q: tensor<1x272xf32>, %g: tensor<1x272xf32>, %beta: tensor<1x1xf32>, %b: !batch, %l: index) -> tensor<1x272xf32> {
  %c = attn.cache @pool[%l] : !attn.cache<kda, [1, 272, 272], f32>
  // expected-error @below {{has head_dim = 272; the host kernel of attn.kda takes multiples of 16 up to 256}}
  %r = attn.kda %q, %q, %q decay %g beta %beta state %c, %b heads 1 chunk 1
    : (tensor<1x272xf32>, tensor<1x272xf32>, tensor<1x272xf32>, tensor<1x272xf32>, tensor<1x1xf32>, !attn.cache<kda, [1, 272, 272], f32>, !batch) -> tensor<1x272xf32>
  return %r : tensor<1x272xf32>
}
attn.pool @pool members [0] : !attn.cache<kda, [1, 272, 272], f32>

// -----

!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @taps(%x: tensor<1x16xf32>, %w: tensor<16x9xf32>, %b: !batch, %l: index) -> tensor<1x16xf32> {
  %c = attn.cache @conv[%l] : !attn.cache<conv, [8, 16], f32>
  // expected-error @below {{has taps = 9; the host kernel of attn.short_conv takes 1 to 8}}
  %r = attn.short_conv %x, %w window %c, %b : (tensor<1x16xf32>, tensor<16x9xf32>, !attn.cache<conv, [8, 16], f32>, !batch) -> tensor<1x16xf32>
  return %r : tensor<1x16xf32>
}
attn.pool @conv members [0] : !attn.cache<conv, [8, 16], f32>

// -----

!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @latent(%q: tensor<1x528xf32>, %s: tensor<1x16xf32>, %b: !batch, %l: index) -> tensor<1x528xf32> {
  %c = attn.cache @pool[%l] : !attn.cache<latent, [256, 544], f32>
  // expected-error @below {{has latent = 528; the host kernel of attn.attend takes 1 to 512}}
  %r = attn.attend %q, %s cache %c, %b heads 1 shared_begin 0 scale 1.0
    : (tensor<1x528xf32>, tensor<1x16xf32>, !attn.cache<latent, [256, 544], f32>, !batch) -> tensor<1x528xf32>
  return %r : tensor<1x528xf32>
}
attn.pool @pool members [0] : !attn.cache<latent, [256, 544], f32>

// -----

!batch = !attn.batch<rows = 1, segments = 1, blocks = 1>
func.func @shared(%q: tensor<1x32xf32>, %s: tensor<1x80xf32>, %b: !batch, %l: index) -> tensor<1x32xf32> {
  %c = attn.cache @pool[%l] : !attn.cache<latent, [256, 112], f32>
  // expected-error @below {{has shared = 80; the host kernel of attn.attend takes 1 to 64}}
  %r = attn.attend %q, %s cache %c, %b heads 1 shared_begin 0 scale 1.0
    : (tensor<1x32xf32>, tensor<1x80xf32>, !attn.cache<latent, [256, 112], f32>, !batch) -> tensor<1x32xf32>
  return %r : tensor<1x32xf32>
}
attn.pool @pool members [0] : !attn.cache<latent, [256, 112], f32>
