// Kernels of the test plans, in the form that the compiler emits: symbol(args, task, tasks), args a block of pointers.
#include <cstdint>

namespace {
struct Range {
  int64_t begin, end;
};
Range share(int64_t n, uint32_t task, uint32_t tasks) { return {n * task / tasks, n * (task + 1) / tasks}; }
} // namespace

constexpr int64_t kRows = 4, kLogitRows = 2, kWidth = 16;

// out[r, :] = table[tokens[r], :] for live rows: [counts, tokens, table, out].
struct GatherArgs {
  const int32_t *counts, *tokens;
  const float *table;
  float *out;
};
extern "C" void test_gather(const void *block, uint32_t task, uint32_t tasks) {
  const GatherArgs &a = *static_cast<const GatherArgs *>(block);
  const Range rows = share(kRows, task, tasks);
  for (int64_t r = rows.begin; r < rows.end && r < a.counts[0]; ++r)
    for (int64_t i = 0; i < kWidth; ++i)
      a.out[r * kWidth + i] = a.table[a.tokens[r] * kWidth + i];
}

// rows[r, :] = rows[r, :] + bias[0, :] + bias[1, :].
struct AddArgs {
  float *rows;
  const float *bias;
};
extern "C" void test_add(const void *block, uint32_t task, uint32_t tasks) {
  const AddArgs &a = *static_cast<const AddArgs *>(block);
  const Range rows = share(kRows, task, tasks);
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t i = 0; i < kWidth; ++i)
      a.rows[r * kWidth + i] += a.bias[i] + a.bias[kWidth + i];
}

// logits[l, :] = 2 rows[logit_rows[l], :].
struct ScaleArgs {
  const int32_t *logit_rows;
  const float *rows;
  float *logits;
};
extern "C" void test_scale(const void *block, uint32_t task, uint32_t tasks) {
  const ScaleArgs &a = *static_cast<const ScaleArgs *>(block);
  const Range rows = share(kLogitRows, task, tasks);
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t i = 0; i < kWidth; ++i)
      a.logits[r * kWidth + i] = 2 * a.rows[a.logit_rows[r] * kWidth + i];
}
