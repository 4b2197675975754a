// Byte-level BPE of one piece of text: the adjacent pair with the lowest rank is merged, leftmost first on ties, until no pair is
// a token.
#pragma once
#include "runtime/text/vocabulary.h"

namespace k31::text {

class Bpe {
public:
  explicit Bpe(const Vocabulary &vocabulary) : vocabulary(vocabulary) {}

  // Appends the ids of `piece` (at most 2^31 bytes). Buffers are kept between calls; O(n log n) in the bytes of the piece.
  void encode(std::string_view piece, std::vector<int32_t> &ids);

private:
  // A part of the piece; parts form a doubly linked list by the index of their first byte.
  struct Part {
    uint32_t end;
    int32_t previous;
    int32_t id;
  };
  // A pair that may be merged. It is stale when the parts have changed since.
  struct Merge {
    int32_t rank;
    uint32_t begin, middle, end;
    bool operator<(const Merge &other) const { return rank != other.rank ? rank > other.rank : begin > other.begin; } // min-heap
  };
  void offer(std::string_view piece, uint32_t begin);

  const Vocabulary &vocabulary;
  std::vector<Part> parts;
  std::vector<Merge> heap;
};

} // namespace k31::text
