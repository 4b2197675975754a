// What the commands of k31-e2e share.
#pragma once
#include "runtime/base/safetensors.h"
#include "runtime/session.h"
#include <cstring>
#include <deque>

namespace k31::e2e {

struct Options {
  std::string plan, weights, out;
  std::vector<int32_t> tokens;
  uint32_t chunk = 0;              // most tokens in one run; 0: what the largest entry holds
  std::string kernels;             // observe: names of kernels start with one of these, separated by commas
  std::string inputs;              // slice: safetensors file
  std::vector<std::string> others; // parts: further plans
  int32_t broken_id = -1;          // states: an id whose embedding is NaN
  Session *session = nullptr;
};

Result<void> observe(const Options &options);
Result<void> batching(const Options &options);
Result<void> slice(const Options &options);
Result<void> stages(const Options &options);
Result<void> states(const Options &options);
Result<void> parts(const Options &options);
Result<void> select(const Options &options);
Result<void> sets(const Options &options);

// Loads and binds, with everything but the weights poisoned: what is read before it is written shows as NaN.
Result<std::unique_ptr<Session>> open(const Options &options);

// Named tensors in order of their first use; rows may be added to them.
class Tensors {
public:
  // Adds `rows` rows of `row_bytes`. Element types are not known here: rows are U8, or F32 when said.
  void append(const std::string &name, std::span<const std::byte> bytes, uint64_t row_bytes, bool f32 = false);
  Result<void> write(const std::string &path) const;

private:
  struct Tensor {
    std::string name;
    std::vector<std::byte> bytes;
    uint64_t row_bytes;
    bool f32;
  };
  std::deque<Tensor> tensors;
};

} // namespace k31::e2e
