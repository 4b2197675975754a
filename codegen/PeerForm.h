// The form of the areas in which ranks of one host meet (kernels/coll/peer_area.h): one for all collectives of an axis.
#pragma once
#include "codegen/Target.h"
#include "codegen/kernels/coll/peer_area.h"

namespace k31 {

// On a GPU blocks that all run at once beside others, and 32 KiB that each writes at a time. On the host one task.
inline kernels::PeerArea peerForm(const Target &target, int32_t ranks) {
  return target.isCuda() ? kernels::PeerArea{128, ranks, 2048} : kernels::PeerArea{1, ranks, 16384};
}

} // namespace k31
