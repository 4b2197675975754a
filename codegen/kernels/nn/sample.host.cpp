// nn.sample on the host: a row is one task's work.
//
// Top-p needs no sort: a quickselect by probability mass finds the least likely kept token in linear time on average.
// Probabilities are recomputed by id for the draw, because the selection reorders its copy. Masses are summed in fp64.
#include "codegen/kernels/nn/sample.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using sample::Args, sample::Config, sample::Params, sample::random_unit;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr float kInfinity = __builtin_inff();

struct Candidate {
  float p;
  int32_t id;
};
K31_INLINE bool better(Candidate a, Candidate b) { return a.p > b.p || (a.p == b.p && a.id < b.id); }

struct Row {
  const float *logits;
  const uint8_t *mask; // null when not masked
  const float *bias;
};

K31_INLINE int lanes_at(int64_t id) { return k31_config.vocab - id < kLanes ? (int)(k31_config.vocab - id) : kLanes; }

// Logits of ids [id, id + n) after mask and bias; -inf in excluded lanes and past n.
K31_INLINE f32x16 scores(const Row &row, int64_t id, int n) {
  const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  f32x16 v = load_part(row.logits, DType::f32, id, n);
  i32x16 allowed = lane < n;
  if (k31_config.masked) {
    i32x16 m = (i32x16)0;
    if (n == kLanes)
      m = __builtin_convertvector(load_vector<u8x16>(row.mask + id), i32x16);
    else
      for (int l = 0; l < n; ++l)
        m[l] = row.mask[id + l];
    allowed &= m != 0;
    v += load_part(row.bias, DType::f32, id, n);
  }
  return allowed ? v : splat(-kInfinity);
}

// The best id, the lowest among equals; -1 when a logit is not finite or no token is allowed.
K31_INLINE Candidate best_of(const Row &row) {
  const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  f32x16 best = splat(-kInfinity);
  i32x16 best_id = (i32x16)-1, bad = (i32x16)0;
  for (int64_t id = 0; id < k31_config.vocab; id += kLanes) {
    int n = lanes_at(id);
    f32x16 raw = load_part(row.logits, DType::f32, id, n), v = scores(row, id, n);
    bad |= (raw - raw != 0.0f) | !(v < kInfinity); // NaN and infinities; -inf in `v` only excludes
    i32x16 win = v > best;
    best = win ? v : best;
    best_id = win ? lane + (int32_t)id : best_id;
  }
  Candidate result{-kInfinity, -1};
  for (int l = 0; l < kLanes; ++l)
    if (best_id[l] >= 0 && (result.id < 0 || better({best[l], best_id[l]}, result)))
      result = {best[l], best_id[l]};
  if (__builtin_reduce_or(bad))
    result.id = -1;
  return result;
}

K31_INLINE f32x16 weights(const Row &row, int64_t id, int n, float highest, float temperature) {
  return exp16((scores(row, id, n) - highest) / temperature);
}

// Partition of [begin, end) around its median of three: better candidates first. Returns where the pivot stands.
K31_INLINE int64_t partition(Candidate *c, int64_t begin, int64_t end) {
  auto swap = [&](int64_t a, int64_t b) __attribute__((always_inline)) {
    Candidate t = c[a];
    c[a] = c[b], c[b] = t;
  };
  int64_t middle = begin + (end - begin) / 2, last = end - 1;
  if (better(c[middle], c[begin]))
    swap(middle, begin);
  if (better(c[last], c[begin]))
    swap(last, begin);
  if (better(c[middle], c[last]))
    swap(middle, last); // the median now stands last
  Candidate pivot = c[last];
  int64_t at = begin;
  for (int64_t i = begin; i < last; ++i)
    if (better(c[i], pivot))
      swap(i, at++);
  swap(at, last);
  return at;
}

// Tokens better than the result are the smallest set of most likely ones whose mass reaches `target`.
K31_INLINE Candidate limit_of(Candidate *c, int64_t count, double target) {
  Candidate limit{-1, 0};
  double mass = 0; // of c[0, begin), all kept
  for (int64_t begin = 0, end = count; begin < end;) {
    int64_t at = partition(c, begin, end);
    double better_mass = 0;
    for (int64_t i = begin; i < at; ++i)
      better_mass += c[i].p;
    if (mass + better_mass >= target && at > begin) {
      limit = c[at], end = at;
    } else if (mass + better_mass + c[at].p >= target) {
      return {c[at].p, c[at].id + 1}; // the pivot is the last one kept
    } else {
      mass += better_mass + c[at].p, begin = at + 1;
    }
  }
  return limit;
}

K31_INLINE int32_t draw(const Row &row, const Params &params, float highest, Candidate *workspace) {
  const int64_t vocab = k31_config.vocab;
  double total = 0;
  for (int64_t id = 0; id < vocab; id += kLanes) {
    int n = lanes_at(id);
    f32x16 w = weights(row, id, n, highest, params.temperature);
    for (int l = 0; l < n; ++l) {
      workspace[id + l] = {w[l], (int32_t)id + l};
      total += w[l];
    }
  }
  Candidate limit{-1, 0};
  if (params.top_p < 1)
    limit = limit_of(workspace, vocab, (double)params.top_p * total);
  double kept = 0, sum = 0;
  for (int64_t id = 0; id < vocab; id += kLanes) {
    f32x16 w = weights(row, id, lanes_at(id), highest, params.temperature);
    for (int l = 0; l < lanes_at(id); ++l)
      if (better({w[l], (int32_t)id + l}, limit))
        kept += w[l];
  }
  double stop = random_unit(params.seed, params.counter) * kept;
  int32_t last = -1;
  for (int64_t id = 0; id < vocab; id += kLanes) {
    f32x16 w = weights(row, id, lanes_at(id), highest, params.temperature);
    for (int l = 0; l < lanes_at(id); ++l) {
      if (w[l] > 0 && better({w[l], (int32_t)id + l}, limit)) {
        sum += w[l], last = (int32_t)id + l;
        if (sum > stop)
          return last;
      }
    }
  }
  return last;
}

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  int at = c.masked ? 2 : 0;
  int32_t *out = (int32_t *)args->tail[at + 1];
  Candidate *workspace = (Candidate *)args->tail[at + 2] + (int64_t)task * c.vocab;
  Range rows = share(*(const int32_t *)args->tail[at], task, tasks);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    Row row{args->logits + r * c.ld_logits, nullptr, nullptr};
    if (c.masked) {
      row.mask = (const uint8_t *)args->tail[0] + r * c.vocab;
      row.bias = (const float *)args->tail[1] + r * c.vocab;
    }
    const Params &params = args->params[r];
    Candidate best = best_of(row);
    bool greedy = !(params.temperature > 0) || best.id < 0;
    out[r] = greedy ? best.id : draw(row, params, best.p, workspace);
  }
}
