// Kimi-Linear: plain pre-norm residuals.
#include "compiler/Import/BuildModel.h"

using namespace mlir;

namespace k31::importer {

void buildKimiLinear(ModelBuilder &m) {
  m.text([&](Value x) {
    for (int64_t layer = 0; layer < m.config.layers; ++layer) {
      func::FuncOp body = m.body(m.layerKind(layer), 0, [&](Value index, ValueRange, Value in) {
        Value mid = m.add(in, m.attention(m.rmsNorm(in, index, "input_layernorm"), index, layer));
        return m.add(mid, m.feedForward(m.rmsNorm(mid, index, "post_attention_layernorm"), index, layer));
      });
      x = m.call(body, layer, {}, x);
    }
    return x;
  });
}

} // namespace k31::importer
