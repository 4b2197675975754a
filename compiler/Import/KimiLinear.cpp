// Kimi-Linear: plain pre-norm residuals.
#include "compiler/Import/BuildModel.h"

using namespace mlir;

namespace k31::importer {

void buildKimiLinear(ModelBuilder &m) {
  auto fill = [&](ModelBuilder::Stream &stream) {
    for (int64_t layer = m.range.begin; layer < m.range.end; ++layer) {
      func::FuncOp body = m.body(m.layerKind(layer), 0, [&](Value index, ValueRange, Value in) {
        Value mid = m.add(in, m.attention(m.rmsNorm(in, index, "input_layernorm"), index, layer));
        return m.add(mid, m.feedForward(m.rmsNorm(mid, index, "post_attention_layernorm"), index, layer));
      });
      stream.prefix = m.call(body, layer, {}, stream.prefix);
    }
  };
  m.text(0, fill, [](const ModelBuilder::Stream &stream) { return stream.prefix; });
}

} // namespace k31::importer
