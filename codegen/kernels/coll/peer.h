// A collective between ranks of one host by a kernel on each: rows are written straight into memory of the peers (peer_area.h).
// Sums are taken in the order of the ranks in fp32 and rounded once, so every rank gets the same bits.
//
//   sum        out = x summed over the ranks; every rank gets all addends. `words` of x
//   sum_pieces the same for long x: each rank sums one piece, then the pieces go round. `words` of a piece, x has `ranks` of them
//   gather     out piece r = x of rank r. `words` of x
//   scatter    out = piece `rank` of x, summed. `words` of a piece
//   exchange   out piece s = piece `rank` of x of rank s, of which the first live[rank] x unit words are moved. `words` of a
//   piece
#pragma once
#include "codegen/kernels/coll/peer_area.h"

namespace k31::kernels::peer {

enum Form : int32_t { sum, sum_pieces, gather, scatter, exchange };

struct Config {
  int32_t form = 0; // of Form
  int32_t ranks = 2;
  int32_t words = 0; // of 16 bytes
  int32_t unit = 0;  // exchange: words of a count of live
  int32_t blocks = 1;
  int32_t region = 0; // words of a slot
  DType type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("form", &Config::form), f("ranks", &Config::ranks), f("words", &Config::words), f("unit", &Config::unit),
        f("blocks", &Config::blocks), f("region", &Config::region), f("type", &Config::type);
  }
  constexpr PeerArea area() const { return {blocks, ranks, region}; }
  constexpr int64_t pieces() const { return form == sum || form == gather ? 1 : ranks; } // of x
};

// Is it cheaper to sum `words` once, piece by piece, than that every rank gets all addends? Those (ranks - 1) words against
// 2 (ranks - 1) / ranks words and a second exchange, which takes as long as so many words do.
constexpr int64_t kSecondExchange = 64 << 10;
constexpr bool by_pieces(int64_t words, int64_t ranks) {
  return words % ranks == 0 && (ranks - 1) * words > 2 * (ranks - 1) * words / ranks + kSecondExchange;
}

struct Args {
  const void *x;
  // live [ranks] int32 of an exchange; out; the rank's own area
  void *tail[3];

  constexpr const int32_t *live() const { return (const int32_t *)tail[0]; }
  constexpr void *out(const Config &c) const { return tail[c.form == exchange]; }
  constexpr void *area(const Config &c) const { return tail[(c.form == exchange) + 1]; }
};

// Words that one exchange of a block may leave for later, and those that this one has: the parts of a piece go round the blocks.
struct Part {
  int64_t begin, count;
};
constexpr int64_t steps_of(const Config &c, int64_t blocks) {
  const int64_t most = blocks * c.region;
  return c.words > most ? (c.words + most - 1) / most : 1;
}
constexpr Part part_of(int64_t total, int64_t parts, int64_t part) {
  const int64_t each = (total + parts - 1) / parts, begin = part * each;
  return {begin, begin >= total ? 0 : total - begin < each ? total - begin : each};
}

} // namespace k31::kernels::peer
