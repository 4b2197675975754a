#include "runtime/engine/block_manager.h"
#include "runtime/base/cat.h"
#include <cassert>

namespace k31::engine {

BlockManager::BlockManager(uint32_t blocks, uint32_t block_tokens) : block_tokens(block_tokens), owners(blocks, 0) {
  free.reserve(blocks);
  for (uint32_t i = blocks; i > 0; --i)
    free.push_back(int32_t(i - 1));
}

Result<void> BlockManager::grow(BlockTable &table, uint64_t positions) {
  const uint32_t want = needed(positions);
  const uint32_t more = want > table.size() ? want - uint32_t(table.size()) : 0;
  if (more > free.size())
    return fail(Code::out_of_memory, cat("a sequence of ", positions, " positions needs ", more, " more cache blocks of ",
                                         block_tokens, " positions, and ", free.size(), " of ", total(),
                                         " are free; compile with a larger --cache-tokens, or run fewer or shorter sequences"));
  for (uint32_t i = 0; i < more; ++i) {
    table.push_back(free.back());
    owners[size_t(free.back())] = 1;
    free.pop_back();
  }
  return {};
}

int32_t BlockManager::replace(int32_t &block) {
  assert(!free.empty() && owners[size_t(block)] > 1);
  --owners[size_t(block)];
  block = free.back();
  free.pop_back();
  owners[size_t(block)] = 1;
  return block;
}

BlockTable BlockManager::share(const BlockTable &table, uint32_t blocks) {
  assert(blocks <= table.size());
  BlockTable out;
  out.reserve(table.capacity()); // steps add blocks without taking memory
  for (uint32_t i = 0; i < blocks; ++i) {
    out.push_back(table[i]);
    ++owners[size_t(table[i])];
  }
  return out;
}

void BlockManager::release(BlockTable &table, std::vector<int32_t> &freed, uint32_t keep) {
  for (; table.size() > keep; table.pop_back()) {
    assert(owners[size_t(table.back())] > 0);
    if (--owners[size_t(table.back())])
      continue;
    free.push_back(table.back());
    freed.push_back(table.back());
  }
}

} // namespace k31::engine
