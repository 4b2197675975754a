// Batches of host kernel tests, and pools of caches.
#pragma once
#include "test/kernels/common/batch_layout.h"
#include "test/kernels/common/codes.h"
#include "test/kernels/common/tensor.h"

namespace k31::test {

struct BatchData : BatchLayout {
  using BatchLayout::BatchLayout;
  kernels::Batch view() const { return {counts.data(), segments.data(), row_segment.data(), table.data()}; }
};

// A cache pool whose rows hold normal values at all positions before the end of each segment, poison elsewhere.
inline Tensor filled_pool(const BatchData &batch, DType type, int width, float scale = 1) {
  Tensor pool(type, batch.pool_rows(), width);
  batch.fill_pool(pool, [=] { return normal(scale); });
  return pool;
}

// The same in fp8: `values` fp32, which become what is stored.
inline Tensor coded_latent_pool(Tensor &values, int codes) {
  Tensor bytes(DType::u8, values.rows(), latent_bytes(codes, (int)values.cols()));
  store_latent_rows(values, bytes, codes);
  return bytes;
}
inline Tensor coded_key_pool(Tensor &values) {
  Tensor bytes(DType::u8, values.rows() / kernels::kBlockTokens, kernels::kBlockTokens * (values.cols() + 4));
  store_keys(values, bytes);
  return bytes;
}

} // namespace k31::test
