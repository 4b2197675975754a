// The memory through which the ranks of one host exchange rows by themselves: one area a rank and mesh axis, mapped by its peers.
//
// An area holds, from its begin on: PeerTable, which Bind fills in; a counter of exchanges for each block; flags [2, blocks,
// ranks]; slots [2, blocks, ranks, region words]. In an exchange a block writes what each peer is to have into the slot of its
// own rank in that peer's area, then its flag there: the number of the exchange, and how many words the sender's whole piece has.
// It goes on when the flags of all peers stand in its own area, and reads its own slots. Flags and slots of odd and even numbers
// lie apart: who writes those of number n + 2 has seen the peer's flag of n + 1, which the peer sets once it has read the slots
// of n. So one flag each way is enough. Blocks keep to their own counter, flags and slots: kernels of any grid may follow each
// other.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels {

constexpr int32_t kMaxPeers = 16;

struct PeerTable {
  void *area[kMaxPeers]; // of each rank, as this process sees it; its own among them
  int32_t rank;
  int32_t failed; // set by a wait that ended without its flag
  // Host: called between looks at a flag; false ends the wait.
  bool (*wait)(PeerTable *table, uint32_t looks);
};

struct PeerArea {
  int32_t blocks, ranks;
  int32_t region; // words of 16 bytes

  static constexpr int64_t kCounters = 256; // byte of the first
  static constexpr int64_t align(int64_t at) { return (at + 127) / 128 * 128; }
  constexpr int64_t flags() const { return align(kCounters + 4 * blocks); }
  constexpr int64_t slots() const { return align(flags() + int64_t{2} * blocks * kMaxPeers * 8); }
  constexpr int64_t bytes() const { return slots() + int64_t{2} * blocks * ranks * region * 16; }

  constexpr uint32_t *counter(void *area, int32_t block) const { return (uint32_t *)((char *)area + kCounters) + block; }
  // What rank `from` writes in exchange `number` to the block's part of `area`.
  constexpr uint64_t *flag(void *area, uint32_t number, int32_t block, int32_t from) const {
    return (uint64_t *)((char *)area + flags()) + ((number & 1) * blocks + block) * kMaxPeers + from;
  }
  constexpr void *slot(void *area, uint32_t number, int32_t block, int32_t from) const {
    return (char *)area + slots() + ((int64_t)((number & 1) * blocks + block) * ranks + from) * region * 16;
  }
};

} // namespace k31::kernels
