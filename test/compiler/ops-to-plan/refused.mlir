// RUN: k31-opt %s -convert-ops-to-plan -split-input-file -verify-diagnostics

// expected-error@+1 {{no function has the attribute k31.entry}}
module {}

// -----

module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
  k31.checkpoint = {hash = "00", files = []},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  func.func @e(%x: tensor<2x4xf32> {k31.input = "hidden"}, %i: tensor<1xi32> {k31.input = "logit_rows"},
               %live: tensor<1xi32> {k31.input = "counts", k31.offset = 0 : i64}) -> (tensor<1x4xf32> {k31.output = "hidden"})
      attributes {k31.entry = {kind = "decode", rows = 2 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    // expected-error@+1 {{has no attribute k31.kernel, so nothing can be launched for it; run select-kernels first}}
    %y = nn.gather %x at %i live %live : (tensor<2x4xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x4xf32>
    return %y : tensor<1x4xf32>
  }
}

// -----

// A stack's member that the model does not have.
module attributes {
  k31.model = {family = "kimi-k3.1", layers = 1 : i64, hidden = 16 : i64, vocab = 32 : i64, eos = array<i64: 7>},
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
  k31.checkpoint = {hash = "00", files = []},
  k31.options = {activations = "fp32", max_context = 256 : i64, max_batch = 1 : i64, cache_tokens = 256 : i64, target = "cpu"}} {
  // expected-error@+1 {{argument 0 is the input 'colour' of type 'tensor<1xi32>', which the entry contract does not have}}
  func.func @e(%x: tensor<1xi32> {k31.input = "colour"}) attributes {k31.entry = {kind = "decode", rows = 1 : i64, segments = 1 : i64, logit_rows = 1 : i64}} {
    return
  }
}
