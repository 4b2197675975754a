// The collectives of a plan on memory of the host, by what a group can do. Sums are taken in the order of the ranks in fp32 and
// rounded once, so every rank of a group gets the same bits.
#pragma once
#include "runtime/comm/group.h"
#include "runtime/comm/traffic.h"
#include "runtime/schema/plan_generated.h"

namespace k31::comm {

// Bytes of memory that perform() works in.
constexpr size_t kScratch = 1u << 20;

// Refuses what this runtime cannot do, before anything runs: transports, types, groups too large for the scratch memory.
Result<void> check_collective(const plan::Collective &collective, const Group &group);

// What one collective works on.
struct Operands {
  const std::byte *source;
  std::byte *dest;
  const int32_t *live = nullptr; // units of Collective.live_unit bytes in each piece; null: whole pieces
};

// `scratch` has kScratch bytes. Source and destination may be the same for all_reduce; they do not overlap otherwise, but that
// the source of an all_gather may be the rank's own piece of the destination. Fails when a count of live units is no part of
// its piece.
Result<void> perform(const plan::Collective &collective, Group &group, const Operands &operands, std::span<std::byte> scratch,
                     Traffic &traffic);

// The largest of the ranks' values.
Result<uint64_t> largest(Group &group, uint64_t mine);

// One rank's bytes to all, of any length; `bytes` of the others get its size.
Result<void> share(Group &group, std::vector<std::byte> &bytes, uint32_t root);

} // namespace k31::comm
