// attn.batch_rows on CUDA: what a rank of a tp group has of the rows of a batch.
#include "codegen/kernels/attn/batch_rows.cuh"
#include "test/kernels/cuda/batch.h"

// For the launch code: see runner.h.
using _ZN3k317kernels10batch_rows6ConfigE = k31::kernels::batch_rows::Config;
using _ZN3k317kernels7RowTileE = k31::kernels::RowTile;

K31_CUDA_KERNEL(batch_rows)

namespace {

using namespace k31::test;
using namespace k31::kernels::batch_rows;

constexpr Config share{.share = 128};
void check(int rank) {
  Batches batch({{0, 300}, {255, 1}, {17, 2}, {600, 3}}, 4 * share.share - 306);
  Tensor number(DType::i32, 1, 1), counts(DType::i32, 1, 4), segments(DType::i32, 4, 6), rows(DType::i32, 1, share.share);
  number.set(0, 0, rank);
  start<share>({batch.view(), number.device<int32_t>(), counts.device<int32_t>(),
                (k31::kernels::Segment *)segments.device<int32_t>(), rows.device<int32_t>()});
  counts.fetch(), segments.fetch(), rows.fetch();
  const int live = std::max(0, std::min(share.share, 306 - rank * share.share));
  if (counts.at(0, 0) != live || counts.at(0, 1) != 4 || counts.at(0, 2) != 0 || counts.at(0, 3) != 0)
    return fail("rank " + std::to_string(rank) + " has other counts");
  for (int row = 0; row < share.share; ++row) {
    const int s = (int)rows.at(0, row), whole = rank * share.share + row;
    if (s != (row < live ? batch.row_segment[whole] : -1))
      return fail("row " + std::to_string(row) + " is of segment " + std::to_string(s));
    if (row < live && segments.at(s, 2) + row - segments.at(s, 0) != batch.position(whole))
      return fail("row " + std::to_string(row) + " is at another position");
  }
}

} // namespace

K31_CUDA_TEST("attn.batch_rows") {
  for (int rank = 0; rank < 4; ++rank)
    check(rank);
}
