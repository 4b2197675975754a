// moe.grouped_linear with MXFP4 weights of K3.1's widths: times of the tiles that are chosen, and of others beside them.
#include "codegen/kernels/moe/grouped_linear.cuh"
#include "test/kernels/cuda/gated.h"
#include "test/kernels/cuda/runner.h"

// For the launch code: see runner.h.
using _ZN3k317kernels14grouped_linear6ConfigE = k31::kernels::grouped_linear::Config;
using _ZN3k317kernels11ProductTileE = k31::kernels::ProductTile;

K31_CUDA_KERNEL(grouped_linear)

namespace {

using namespace k31::test;
using namespace k31::kernels::grouped_linear;

constexpr int kExperts = 896, kChoices = 16;            // of the model, and of a token
constexpr int kWide = 6144, kNarrow = 3584, kUp = 3072; // n x k: 6144 x 3584, then 3584 x 3072

// Operands of the largest case, made once for all: what is small is repeated, since the values do not count.
struct Operands {
  static constexpr int64_t kRows = 8192 * kChoices, kWeights = (int64_t)kExperts * kWide * kNarrow;
  char *x, *codes, *scale, *out;

  Operands() {
    Tensor rows(DType::bf16, 2048, kNarrow), some(DType::u8, 2048 * 64, kNarrow / 2);
    rows.fill_fast(), some.fill_fast();
    x = repeated(rows, kRows * kNarrow * 2), codes = repeated(some, kWeights / 2);
    scale = memory(kWeights / 32), out = memory(kRows * kNarrow * 2);
    check(cudaMemset(scale, 118, kWeights / 32), "scales");
  }
  static char *memory(int64_t bytes) {
    void *p = nullptr;
    check(cudaMalloc(&p, bytes), "memory of operands");
    return (char *)p;
  }
  static char *repeated(Tensor &part, int64_t bytes) {
    char *all = memory(bytes);
    const int64_t own = part.rows() * part.cols() * k31::kernels::bytes_of_type(part.type());
    for (int64_t at = 0; at < bytes; at += own)
      check(cudaMemcpy(all + at, part.device(), std::min(own, bytes - at), cudaMemcpyDeviceToDevice), "copy of operands");
    return all;
  }
};
const Operands &operands() {
  static const Operands all;
  return all;
}

// Another tile than the chosen one.
enum Other { kChosen, kThinOf, kDecodedOf };
template <Config c, Other other, int bm, int stages> constexpr Tile tile_of() {
  Tile t = other == kChosen ? choose(c) : other == kDecodedOf ? decoded_tile(bm) : thin_tile(bm, c);
  if (stages)
    t.stages = stages;
  return t;
}

// `live` tokens of a capacity of `tokens` choose among all experts evenly; `experts` of them are here, of `kExperts / experts`
// ranks. first: the product of gates and ups, with a fused region.
template <int tokens, bool first, int experts = 112, Other other = kChosen, int bm = 0, int stages = 0>
void time_grouped(int live = tokens) {
  constexpr int n = first ? kWide : kNarrow, k = first ? kNarrow : kUp;
  constexpr Config c{.rows = tokens * kChoices,
                     .experts = experts,
                     .n = n,
                     .k = k,
                     .pair = first,
                     .epilogue = first,
                     .ld_x = k,
                     .ld_out = first ? n / 2 : n,
                     .ranks = kExperts / experts};
  constexpr Tile tile = tile_of<c, other, bm, stages>();
  const Operands &all = operands();
  Tensor offsets(DType::i32, 1, experts + 1);
  std::vector<int> count(experts);
  for (int i = 0; i < live * kChoices; ++i)
    if (int e = uniform_int(0, kExperts - 1); e < experts)
      ++count[e];
  int at = 0, hit = 0;
  for (int e = 0; e < experts; ++e)
    offsets.set(0, e, at), at += count[e], hit += count[e] > 0;
  offsets.set(0, experts, at);
  Args args{all.x, all.codes, {all.scale, offsets.device(), all.out}};
  using Region = std::conditional_t<first, Gated, k31::kernels::NoRegion>;
  const double us = time_us([&](int) { start<c, tile, Region>(args); }, experts == kExperts ? 4 : 20);
  report(std::string(k31::kernels::kProductFormNames[tile.form]) + " " + std::to_string(tile.bm) + "/" +
             std::to_string(tile.stages) + ", " + std::to_string(live) + " of " + std::to_string(tokens) + " tokens, " +
             std::to_string(hit) + " experts, " + std::to_string(n) + " x " + std::to_string(k),
         us, (double)hit * n * k * (0.5 + 1 / 32.0), 2.0 * at * n * k);
}
} // namespace

K31_CUDA_TEST("moe.grouped_linear.time") { // an eighth of the experts
  if (!timing())
    return;
  time_grouped<1, true>(), time_grouped<64, true>(), time_grouped<64, false>(), time_grouped<512, true>(),
      time_grouped<4096, true>(), time_grouped<4096, false>();
  time_grouped<128, true>(), time_grouped<128, false>(), time_grouped<128, true, 112, kThinOf, 8, 2>(),
      time_grouped<128, true, 112, kThinOf, 8, 6>(), time_grouped<128, true, 112, kThinOf, 16, 3>();
  time_grouped<256, true>(), time_grouped<256, true, 112, kDecodedOf, 96>();
  time_grouped<512, true, 112, kThinOf, 16>(), time_grouped<512, true, 112, kDecodedOf, 32>();
  time_grouped<1024, true>(), time_grouped<1024, true, 112, kThinOf, 16>(), time_grouped<2048, true>(),
      time_grouped<2048, false>(), time_grouped<2048, true, 112, kDecodedOf, 48>();
  time_grouped<8192, true>(), time_grouped<8192, false>();
}
K31_CUDA_TEST("moe.grouped_linear.time_all") { // all experts, and a capacity of which a part is live
  if (!timing())
    return;
  time_grouped<64, true, kExperts>(), time_grouped<256, true, kExperts>(), time_grouped<512, true, kExperts>(),
      time_grouped<512, false, kExperts>();
  for (int live : {512, 1024, 2048, 4096, 8192})
    time_grouped<8192, true, kExperts>(live), time_grouped<8192, false, kExperts>(live);
}
