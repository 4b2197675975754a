// Times of attn.index_select. Apart from its test: the launch code that nvcc 13.0 writes does not find the kernels of a Config
// with these scales by their values ("invalid resource handle"), so they are named by types here.
#include "codegen/kernels/attn/index_select.cuh"
#include "test/kernels/cuda/batch.h"

K31_CUDA_KERNEL_BY_TYPE(index_select)

namespace {
using namespace k31::test;
using namespace k31::kernels::index_select;

template <class S> void measure(const std::vector<Batches::Run> &runs) {
  constexpr Config c = S::config;
  Batches batch(runs, 0, c.blocks);
  Tensor q(DType::bf16, batch.rows(), 4096), w(DType::f32, batch.rows(), 32);
  Tensor pages(c.cache_type == DType::i8 ? DType::u8 : DType::bf16, batch.pool_rows(), c.cache_type == DType::i8 ? 132 : 128);
  Tensor out(DType::i32, batch.rows(), c.top_k), scratch(DType::u8, 1, workspace(c, choose(c)));
  q.fill_fast(), w.fill_fast(), pages.fill_fast();
  const float scale = 1.0f / 256;
  for (int64_t p = 0; c.cache_type == DType::i8 && p < batch.pool_blocks; ++p) {
    unsigned char *page = pages.as<unsigned char>() + p * 256 * 132;
    for (int i = 0; i < 256 * 128; ++i)
      page[i] = (p * 256 * 128 + i) * 2654435761u >> 24 & 0xbe;
    for (int i = 0; i < 256; ++i)
      std::memcpy(page + 256 * 128 + 4 * i, &scale, 4);
  }
  Args args{q.device(), w.device(), pages.device(), batch.view(), out.device<int32_t>(), scratch.device()};
  double us = time_us([&](int) { start<S>(args); }, 5), keys = 0, pairs = 0;
  for (const auto &run : runs)
    keys += run.start + run.length, pairs += (double)run.length * (run.start + run.length);
  report(std::string(c.cache_type == DType::i8 ? "fp8 " : "") + "index_select " + std::to_string(batch.live()) + " rows over " +
             std::to_string(c.max_context),
         us, keys * (c.cache_type == DType::i8 ? 132 : 256), pairs * 32 * 128 * 2);
}
template <int32_t capacity, int32_t context, DType type = DType::bf16> struct At {
  static constexpr Config config{.rows = capacity,
                                 .heads = 32,
                                 .head_dim = 128,
                                 .top_k = 2048,
                                 .max_context = context,
                                 .ld_q = 4096,
                                 .ld_w = 32,
                                 .blocks = context / 256,
                                 .scale = 0.0883883f,
                                 .head_scale = 0.1767767f,
                                 .cache_type = type,
                                 .runs = capacity >= 512};
};
K31_CUDA_TEST("attn.index_select.time") {
  if (!timing())
    return;
  constexpr int K = 1024;
  for (int rows : {1, 16})
    measure<At<64, 128 * K>>(std::vector<Batches::Run>((size_t)rows, {128 * K - 1, 1}));
  measure<At<64, 1024 * K>>({{1024 * K - 1, 1}});
  measure<At<64, 1024 * K, DType::i8>>({{1024 * K - 1, 1}});
  measure<At<64, 8 * K>>(std::vector<Batches::Run>(64, {8 * K - 1, 1}));
  measure<At<4096, 128 * K>>({{124 * K, 4096}});
  measure<At<4096, 128 * K, DType::i8>>({{124 * K, 4096}});
  measure<At<512, 1024 * K>>({{1024 * K - 512, 512}});
}
} // namespace
