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

FailureOr<StateBytes> to_plan::buildState(ModuleOp module, OpBuilder &builder, Places &places) {
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

  StateBytes bytes;
  for (auto pool : llvm::make_early_inc_range(module.getOps<attn::PoolOp>())) {
    attn::CacheType type = pool.getType();
    int64_t units = type.isPaged() ? blocks : slots;
    int64_t bytesOfAll = 0, end = type.isPaged() ? bytes.paged : bytes.slotted;
    if (llvm::MulOverflow(units, type.getUnitBytes(), bytesOfAll) ||
        llvm::MulOverflow(aligned(bytesOfAll), int64_t(pool.getMembers().size()), bytesOfAll) ||
        llvm::AddOverflow(end, bytesOfAll, end))
      return pool.emitOpError("needs ") << units << " units of " << type.getUnitBytes() << " bytes for each of "
                                        << pool.getMembers().size()
                                        << " layers, more than 64 bits count; lower max_context, max_batch or cache_tokens";
    SmallVector<int64_t> shape{units};
    llvm::append_range(shape, type.getShape());
    Place place;
    place.type = RankedTensorType::get(shape, type.getElement());
    place.stride = aligned(byteSize(place.type));
    place.begin = type.isPaged() ? bytes.paged : bytes.slotted;
    place.members.assign(pool.getMembers().begin(), pool.getMembers().end());
    for (auto [i, layer] : llvm::enumerate(place.members))
      planir::StateMemberOp::create(builder, pool.getLoc(), kindOf(type.getKind()), layer, type.isPaged() ? "cache" : "state",
                                    place.begin + int64_t(i) * place.stride, type.getUnitBytes(), units);
    (type.isPaged() ? bytes.paged : bytes.slotted) = end;
    places[pool.getSymName()] = std::move(place);
  }
  return bytes;
}
