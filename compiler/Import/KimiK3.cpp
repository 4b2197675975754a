// Kimi K3 and K3.1: block attention residuals. A layer reads a mix of the sums of all earlier blocks and the running sum.
#include "compiler/Import/BuildModel.h"

using namespace mlir;

namespace k31::importer {

// The number of sources is part of a body's identity, and so is a block's start: there the running sum becomes one more source
// after the attention mix, and the attention's result starts the next sum.
static func::FuncOp layerBody(ModelBuilder &m, int64_t layer, size_t sources, bool start) {
  std::string name = m.layerKind(layer) + "_s" + std::to_string(sources) + (start ? "_start" : "");
  return m.body(name, sources, [&](Value index, ValueRange blocks, Value prefix) {
    SmallVector<Value> bank(blocks);
    bank.push_back(prefix);
    Value mixed = blocks.empty() ? prefix : m.attnRes(bank, index, "self_attention_res");
    Value a = m.attention(m.rmsNorm(mixed, index, "input_layernorm"), index, layer);
    if (start)
      bank.push_back(a);
    else
      bank.back() = a = m.add(prefix, a);
    Value ff = m.feedForward(m.rmsNorm(m.attnRes(bank, index, "mlp_res"), index, "post_attention_layernorm"), index, layer);
    return m.add(a, ff);
  });
}

void buildKimiK3(ModelBuilder &m) {
  // The bank holds the sums of finished blocks; the first is the embedding. Each block that starts adds one.
  const int64_t block = m.config.residualBlock;
  m.text((m.range.begin + block - 1) / block,
         [&](ModelBuilder::Stream &stream) {
           for (int64_t layer = m.range.begin; layer < m.range.end; ++layer) {
             bool start = layer % block == 0;
             Value next = m.call(layerBody(m, layer, stream.bank.size(), start), layer, stream.bank, stream.prefix);
             if (start)
               stream.bank.push_back(stream.prefix);
             stream.prefix = next;
           }
         },
         [&](const ModelBuilder::Stream &stream) {
           SmallVector<Value> sources(stream.bank);
           sources.push_back(stream.prefix);
           return m.attnRes(sources, Value(), "model.output_attn_res");
         });
}

} // namespace k31::importer
