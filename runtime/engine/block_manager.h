// The pool of cache blocks, and the tables of the sequences that own them. A block holds block_tokens positions of every layer.
// It may have several owners: sequences and kept states that begin with the same tokens. Who wants to write one copies it first.
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

  uint32_t total() const { return uint32_t(owners.size()); }
  uint32_t available() const { return uint32_t(free.size()); }
  uint32_t needed(uint64_t positions) const { return uint32_t((positions + block_tokens - 1) / block_tokens); }
  uint32_t owners_of(int32_t block) const { return owners[size_t(block)]; }

  // True when position `position` is in the middle of the table's last block and that block has other owners too.
  bool shared_tail(const BlockTable &table, uint32_t position) const {
    return position % block_tokens && owners_of(table[position / block_tokens]) > 1;
  }

  // Grows the table until it holds `positions`: wholly, or not at all and an error with the numbers.
  Result<void> grow(BlockTable &table, uint64_t positions);

  // Gives the table's entry a block of its own in place of a shared one, and returns it; what it held is not copied. Only while
  // a block is available.
  int32_t replace(int32_t &block);

  // The first `blocks` blocks of the table, which get one owner more.
  BlockTable share(const BlockTable &table, uint32_t blocks);

  // Takes blocks back until the table has `keep`. Those that nobody owns any more are added to `freed`.
  void release(BlockTable &table, std::vector<int32_t> &freed, uint32_t keep = 0);

private:
  uint32_t block_tokens;
  std::vector<uint32_t> owners; // of each block
  std::vector<int32_t> free;    // the last is taken next
};

} // namespace k31::engine
