// One token id a logit row: greedy, or temperature and top-p with a counter-based random number.
//
// Greedy (temperature 0) takes the lowest id among equal maxima. Otherwise the smallest set of most likely ids whose
// probability reaches top_p is kept (ties: lower id first) and one is drawn. The draw depends on (seed, counter) alone, so a
// sequence gives the same text alone and in a batch: u in [0, 1) is splitmix64 of them, and the answer is the first kept id, in
// ascending order of ids, at which the kept probabilities add up to more than u times their sum.
// A row with a non-finite logit gives id -1. With `masked` a token whose mask is 0 is never chosen, the bias is added to the
// others' logits, a bias of -inf excludes too, and a row without any allowed token gives -1.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::sample {

struct Config {
  int32_t rows = 0; // L, capacity
  int32_t vocab = 0;
  int32_t masked = 0; // 1: a mask and a bias operand are present
  int32_t ld_logits = 0;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("vocab", &Config::vocab), f("masked", &Config::masked), f("ld_logits", &Config::ld_logits);
  }
};

// How one row is sampled; filled by the engine at Run.
struct Params {
  float temperature; // 0: greedy
  float top_p;       // (0, 1]
  uint64_t seed;
  uint64_t counter; // tokens drawn before in this sequence
};

constexpr uint64_t mix_bits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
// splitmix64, stream `seed`, number `counter`: 53 bits in [0, 1).
constexpr double random_unit(uint64_t seed, uint64_t counter) {
  const uint64_t step = 0x9e3779b97f4a7c15u;
  return (double)(mix_bits(mix_bits(seed + step) + step * (counter + 1)) >> 11) * (1.0 / 9007199254740992.0); // 2^-53
}

struct Args {
  const float *logits;  // [L, vocab]
  const Params *params; // [L]
  void *tail[5];        // mask [L, vocab] uint8 and bias [L, vocab] fp32 when `masked`; live [1] int32, out [L] int32,
                        // workspace [tasks, vocab] pairs of (float, int32)
};

} // namespace k31::kernels::sample
