// Communication beside computation on a GPU: collectives run on a stream of their own while launches that need nothing of theirs
// run on the first.
#pragma once
#include "dialects/Plan/Plan.h"

namespace k31::planir {

inline constexpr uint32_t kCollectiveStream = 1;

// Moves launches that do not depend on a collective up behind it, before the first command that does, and puts the collectives of
// the entry on a stream of their own. All of them: on one stream they start in one order on every rank. Where no launch can run
// beside a collective the entry stays as it is. Events between the streams are schedule's. Returns the collectives that have
// company, with the launches beside each.
struct Company {
  CollectiveOp collective;
  llvm::SmallVector<LaunchOp> launches;
};
llvm::SmallVector<Company> overlapCollectives(EntryOp entry);

} // namespace k31::planir
