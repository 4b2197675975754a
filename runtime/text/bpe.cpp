#include "runtime/text/bpe.h"
#include <algorithm>

namespace k31::text {

// Puts the pair of the part at `begin` and its successor on the heap when it is a token.
void Bpe::offer(std::string_view piece, uint32_t begin) {
  const uint32_t middle = parts[begin].end;
  if (middle == piece.size())
    return;
  const uint32_t end = parts[middle].end;
  const int32_t rank = vocabulary.find(piece.substr(begin, end - begin));
  if (rank < 0)
    return;
  heap.push_back({rank, begin, middle, end});
  std::push_heap(heap.begin(), heap.end());
}

void Bpe::encode(std::string_view piece, std::vector<int32_t> &ids) {
  if (piece.empty())
    return;
  // tiktoken takes a piece that is a token as it is; for a vocabulary made by merging this is also what the merges give.
  if (const int32_t id = vocabulary.find(piece); id >= 0) {
    ids.push_back(id);
    return;
  }
  const uint32_t size = uint32_t(piece.size());
  parts.resize(size);
  heap.clear();
  for (uint32_t i = 0; i < size; ++i)
    parts[i] = {i + 1, int32_t(i) - 1, vocabulary.find(piece.substr(i, 1))};
  for (uint32_t i = 0; i + 1 < size; ++i)
    offer(piece, i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Merge merge = heap.back();
    heap.pop_back();
    // A part that was swallowed has id -1; a part that grew has another end.
    Part &left = parts[merge.begin];
    if (left.id < 0 || left.end != merge.middle || parts[merge.middle].end != merge.end)
      continue;
    parts[merge.middle].id = -1;
    left.end = merge.end;
    left.id = merge.rank;
    if (merge.end < size)
      parts[merge.end].previous = int32_t(merge.begin);
    offer(piece, merge.begin);
    if (left.previous >= 0)
      offer(piece, uint32_t(left.previous));
  }
  for (uint32_t i = 0; i < size; i = parts[i].end)
    ids.push_back(parts[i].id);
}

} // namespace k31::text
