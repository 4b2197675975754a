// The pool of cache blocks, and the tables of the sequences that own them. A block holds block_tokens positions of every layer.
#pragma once
#include "runtime/base/result.h"
#include <cstdint>
#include <vector>

namespace k31::engine {

// Physical block of each block_tokens positions of one sequence.
using BlockTable = std::vector<int32_t>;

class BlockManager {
public:
  BlockManager(uint32_t blocks, uint32_t block_tokens);

  uint32_t total() const { return blocks; }
  uint32_t available() const { return uint32_t(free.size()); }
  uint32_t needed(uint64_t positions) const { return uint32_t((positions + block_tokens - 1) / block_tokens); }

  // Grows the table until it holds `positions`: wholly, or not at all and an error with the numbers.
  Result<void> grow(BlockTable &table, uint64_t positions);

  // Takes all blocks of the table back.
  void release(BlockTable &table);

private:
  uint32_t blocks, block_tokens;
  std::vector<int32_t> free; // the last is taken next
};

} // namespace k31::engine
