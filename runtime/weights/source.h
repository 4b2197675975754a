// Where the bytes of weights come from: the files of a checkpoint, or a generator for timing without one.
#pragma once
#include "runtime/base/result.h"
#include "runtime/schema/plan_generated.h"
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace k31::weights {

// Read by several threads at once.
class Source {
public:
  virtual ~Source() = default;
  // Bytes from `offset` on of member `member` of a stack.
  virtual Result<void> read(const plan::WeightStack &stack, uint32_t member, uint64_t offset, std::span<std::byte> out) const = 0;
};

Result<std::unique_ptr<Source>> open_checkpoint(const plan::Plan &plan, const std::string &folder);

// Made from a seed: finite values that keep activations finite and spread routing. A byte depends on the seed, the name of its
// tensor and its place there alone, so that plans and ranks that split tensors in other ways see the same weights.
//
// Matrices and vectors: about normal, deviation 0.02; gains of norms: about 1. MXFP4: any codes, scales 2^-9 to 2^-3. The bias
// of a router's scores: deviation 0.01, so that the scores decide; skewed: 0.3, so that some experts are chosen most of the time.
std::unique_ptr<Source> make_synthetic(uint64_t seed, bool skewed = false);

// The generator when a seed is given, else the checkpoint.
Result<std::unique_ptr<Source>> open_source(const plan::Plan &plan, const std::string &folder, std::optional<uint64_t> seed,
                                            bool skewed = false);

// Fills bytes with about normal values of one type (f32 or bf16) and mean 0, at the speed of memory.
void fill_normal(std::span<std::byte> bytes, plan::DType type, float deviation, uint64_t seed);

} // namespace k31::weights
