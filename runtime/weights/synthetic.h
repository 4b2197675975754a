// Weights made from a seed, for timing without a checkpoint: finite values that keep activations finite and spread routing.
//
// Matrices and vectors: about normal, deviation 0.02; gains of norms: about 1. MXFP4: any codes, scales 2^-9 to 2^-3. The bias
// of a router's scores: deviation 0.01, so that the scores decide.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstddef>
#include <functional>
#include <span>

namespace k31::weights {

// Puts bytes of at most 512 KiB at a place of an arena; called by several threads at once.
using WriteArena = std::function<void(uint32_t arena, uint64_t offset, std::span<const std::byte> bytes)>;

// Fills the weights of the plan. The same seed gives the same bytes for any number of threads.
void fill_synthetic(const plan::Plan &plan, const WriteArena &write, int threads, uint64_t seed);

// Fills bytes with about normal values of one type (f32 or bf16) and mean 0, at the speed of memory.
void fill_normal(std::span<std::byte> bytes, plan::DType type, float deviation, uint64_t seed);

} // namespace k31::weights
