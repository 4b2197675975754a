// RUN: k31-opt %s -convert-ops-to-plan -split-input-file -verify-diagnostics

// expected-error@+1 {{no function has the attribute k31.entry}}
module {}

// -----

module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.checkpoint = {hash = "00", files = []},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  func.func @e(%x: tensor<2x4xf32> {k31.input = "hidden"}, %i: tensor<1xi32> {k31.input = "logit_rows"},
               %live: tensor<1xi32> {k31.input = "counts", k31.offset = 0 : i64}) -> (tensor<1x4xf32> {k31.output = "hidden"})
      attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    // expected-error@+1 {{has no attribute k31.kernel, so nothing can be launched for it; run select-kernels first, or attach a KernelOp model in codegen/ when it has none}}
    %y = nn.gather %x at %i live %live : (tensor<2x4xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x4xf32>
    return %y : tensor<1x4xf32>
  }
}

// -----

// A stack's member that the model does not have.
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.checkpoint = {hash = "00", files = []},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  nn.tensor @t "t.{}" members [0] files [0] offsets [0] : tensor<4xf32>
  nn.stack @s [@t] rows [4] : tensor<4xf32>
  func.func @e() attributes {k31.entry = {kind = "decode", rows = 1 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    %c3 = arith.constant 3 : index
    // expected-error@+1 {{asks @s for layer 3, which is none of its members}}
    %w = nn.weight @s[%c3] : tensor<4xf32>
    return
  }
}

// -----

module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.checkpoint = {hash = "00", files = []},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  // expected-error@+1 {{argument 0 is the input 'colour' of type 'tensor<1xi32>', which the entry contract does not have}}
  func.func @e(%x: tensor<1xi32> {k31.input = "colour"}) attributes {k31.entry = {kind = "decode", rows = 1 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    return
  }
}

// -----

// expected-error@+1 {{has no k31.mesh; run assign-parallelism first}}
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.checkpoint = {hash = "00", files = []},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  func.func @e() attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    return
  }
}

// -----

// The distance between the rows of a view is known to the function that made it alone.
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.checkpoint = {hash = "00", files = []},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  func.func private @body(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
    %v = nn.columns %x[4:8] : tensor<2x8xf32>
    // expected-error@+1 {{returns a view of columns; store it first}}
    return %v : tensor<2x4xf32>
  }
  func.func @e(%x: tensor<2x8xf32> {k31.input = "hidden"}) -> (tensor<2x4xf32> {k31.output = "hidden"})
      attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    %y = func.call @body(%x) : (tensor<2x8xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}

// -----

// 2^31 blocks do not fit the plan's 32 bits.
// expected-error@+1 {{k31.options: 549755813888 cache_tokens and 1 sequences; a plan holds at most 2147483647 blocks of 256 tokens}}
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.checkpoint = {hash = "00", files = []},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 549755813888 : i64, target = "cpu"}} {
  func.func @e() attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    return
  }
}

// -----

// 2^30 blocks of 2^32 values for each of three layers are more bytes than 64 bits count.
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.checkpoint = {hash = "00", files = []},
  k31.mesh = {tp = 1 : i64, dp = 1 : i64, ep = 1 : i64, pp = 1 : i64, node = 1 : i64},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 274877906944 : i64, target = "cpu"}} {
  // expected-error@+1 {{needs 1073741824 units of 17179869184 bytes for each of 3 layers, more than 64 bits count}}
  attn.pool @latent members [0, 1, 2] : !attn.cache<latent, [256, 16777216], f32>
  func.func @e() attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    return
  }
}
