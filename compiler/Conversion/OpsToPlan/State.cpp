// attn.pool to plan.state_member: one cache of one layer each, paged kinds in @cache, slotted kinds in @state.
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "compiler/Sizes.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

static planir::StateKind kindOf(attn::CacheKind kind) {
  switch (kind) {
  case attn::CacheKind::latent:
    return planir::StateKind::latent;
  case attn::CacheKind::index:
    return planir::StateKind::index;
  case attn::CacheKind::kda:
    return planir::StateKind::kda;
  case attn::CacheKind::conv:
    return planir::StateKind::conv;
  }
  llvm_unreachable("a kind of cache");
}

// The pools of one stage, behind each other in both arenas.
static FailureOr<StateBytes> buildStage(ModuleOp module, OpBuilder &builder, int64_t stage, const Usage *usage, int64_t blocks,
                                        int64_t slots, Places &places) {
  StateBytes bytes;
  for (auto pool : llvm::to_vector(module.getOps<attn::PoolOp>())) {
    attn::CacheType type = pool.getType();
    Place place;
    auto used = usage ? usage->find(pool.getSymName()) : Usage::const_iterator();
    for (int64_t layer : pool.getMembers())
      if (!usage || (used != usage->end() && used->second.count(layer)))
        place.members.push_back(layer);
    if (place.members.empty())
      continue;
    int64_t units = type.isPaged() ? blocks : slots;
    int64_t bytesOfAll = 0, end = type.isPaged() ? bytes.paged : bytes.slotted;
    if (llvm::MulOverflow(units, type.getUnitBytes(), bytesOfAll) ||
        llvm::MulOverflow(aligned(bytesOfAll), int64_t(place.members.size()), bytesOfAll) ||
        llvm::AddOverflow(end, bytesOfAll, end))
      return pool.emitOpError("needs ") << units << " units of " << type.getUnitBytes() << " bytes for each of "
                                        << place.members.size()
                                        << " layers, more than 64 bits count; lower max_context, max_batch or cache_tokens";
    place.type = type.getStored(units);
    place.stride = aligned(byteSize(place.type));
    place.begin = type.isPaged() ? bytes.paged : bytes.slotted;
    for (auto [i, layer] : llvm::enumerate(place.members))
      planir::StateMemberOp::create(builder, pool.getLoc(), kindOf(type.getKind()), layer, type.isPaged() ? "cache" : "state",
                                    place.begin + int64_t(i) * place.stride, type.getUnitBytes(), units, stage,
                                    type.getRowCodes());
    (type.isPaged() ? bytes.paged : bytes.slotted) = end;
    places[pool.getSymName()] = std::move(place);
  }
  return bytes;
}

FailureOr<StateBytes> to_plan::buildState(ModuleOp module, OpBuilder &builder, ArrayRef<Usage> stages,
                                          SmallVectorImpl<Places> &places) {
  FailureOr<int64_t> tokens = integerOf(module, "k31.options", "cache_tokens");
  FailureOr<int64_t> batch = integerOf(module, "k31.options", "max_batch");
  if (failed(tokens) || failed(batch))
    return failure();
  int64_t blocks = llvm::divideCeil(*tokens, kBlockTokens);
  if (blocks > INT32_MAX || *batch > INT32_MAX)
    return module.emitError("k31.options: ") << *tokens << " cache_tokens and " << *batch << " sequences; a plan holds at most "
                                             << INT32_MAX << " blocks of " << kBlockTokens << " tokens and as many sequences";
  int64_t slots = *batch; // one a sequence that the plan holds at once
  planir::StateOp::create(builder, module.getLoc(), kBlockTokens, blocks, slots);
  StateBytes most;
  for (auto [stage, usage] : llvm::enumerate(stages)) {
    FailureOr<StateBytes> bytes =
        buildStage(module, builder, stage, stages.size() == 1 ? nullptr : &usage, blocks, slots, places.emplace_back());
    if (failed(bytes))
      return failure();
    most = {std::max(most.paged, bytes->paged), std::max(most.slotted, bytes->slotted)};
  }
  return most;
}
