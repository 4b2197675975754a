// What the runtime knows of an area in an arena of kind shared: the table at its begin. What follows is the kernels' own, and
// zero before the first run.
#pragma once
#include <cstdint>

namespace k31::plan {

constexpr int32_t kMaxPeers = 16;

struct PeerTable {
  uint64_t area[kMaxPeers]; // address of each rank's area of the axis, as this rank sees it; its own among them
  int32_t rank;             // coordinate on the axis
  int32_t failed;           // set by a kernel whose wait ended
  bool (*wait)(PeerTable *table, uint32_t looks); // host: between looks at a flag; false ends the wait
};

} // namespace k31::plan
