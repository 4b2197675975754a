// moe.route on the host: one pass over the experts that keeps the best top_k in the outputs themselves, sorted.
//
// Nearly all experts lose against the current last choice, so 16 at a time are compared with it and only winners are inserted.
// A NaN score counts as -inf: the ids stay distinct and in range, the NaN shows up in the weights.
#include "codegen/kernels/moe/route.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using route::Args, route::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

K31_INLINE f32x16 sigmoid(f32x16 x) { return 1.0f / (1.0f + exp16(-x)); }

// Puts a candidate into the sorted list of `count` choices; equal scores keep the earlier (lower) expert first.
K31_INLINE int insert(int32_t *ids, float *scores, int count, int most, int32_t id, float score) {
  if (count == most && !(score > scores[most - 1]))
    return count;
  int at = count < most ? count : most - 1;
  for (; at > 0 && score > scores[at - 1]; --at)
    ids[at] = ids[at - 1], scores[at] = scores[at - 1];
  ids[at] = id, scores[at] = score;
  return count < most ? count + 1 : count;
}

K31_INLINE void route_row(const Args *args, int64_t row) {
  const Config &c = k31_config;
  const float *logits = args->logits + row * c.ld_logits;
  int32_t *ids = args->ids + row * c.top_k;
  float *weights = args->weights + row * c.top_k;
  const f32x16 lowest = splat(-__builtin_inff());
  int count = 0;
  for (int e = 0; e < c.experts; e += kLanes) {
    int n = c.experts - e < kLanes ? c.experts - e : kLanes;
    f32x16 s = sigmoid(load_part(logits, DType::f32, e, n)) + load_part(args->bias, c.bias_type, e, n);
    s = s == s ? s : lowest;
    if (count == c.top_k && !__builtin_reduce_or((i32x16)(s > splat(weights[c.top_k - 1]))))
      continue;
    for (int l = 0; l < n; ++l)
      count = insert(ids, weights, count, c.top_k, e + l, s[l]);
  }
  float total = 0;
  for (int i = 0; i < c.top_k; ++i) {
    weights[i] = sigmoid(splat(logits[ids[i]]))[0];
    total += weights[i];
  }
  float factor = c.renormalize ? c.scale / (total + 1e-20f) : c.scale;
  for (int i = 0; i < c.top_k; ++i)
    weights[i] *= factor;
}

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  Range rows = share(*args->live, task, tasks);
  for (int64_t row = rows.begin; row < rows.end; ++row)
    route_row(args, row);
}
