#include "runtime/engine/block_manager.h"
#include "runtime/base/cat.h"
#include <cassert>

namespace k31::engine {

BlockManager::BlockManager(uint32_t blocks, uint32_t block_tokens) : blocks(blocks), block_tokens(block_tokens) {
  free.reserve(blocks);
  for (uint32_t i = blocks; i > 0; --i)
    free.push_back(int32_t(i - 1));
}

Result<void> BlockManager::grow(BlockTable &table, uint64_t positions) {
  const uint32_t want = needed(positions);
  const uint32_t more = want > table.size() ? want - uint32_t(table.size()) : 0;
  if (more > free.size())
    return fail(Code::out_of_memory, cat("a sequence of ", positions, " positions needs ", more, " more cache blocks of ",
                                         block_tokens, " positions, and ", free.size(), " of ", blocks,
                                         " are free; compile with a larger --cache-tokens, or run fewer or shorter sequences"));
  for (uint32_t i = 0; i < more; ++i) {
    table.push_back(free.back());
    free.pop_back();
  }
  return {};
}

void BlockManager::release(BlockTable &table) {
  assert(free.size() + table.size() <= blocks);
  while (!table.empty()) {
    free.push_back(table.back());
    table.pop_back();
  }
}

} // namespace k31::engine
