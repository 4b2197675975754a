// attn.pool to plan.state_member: one cache of one layer each, paged kinds in @cache, slotted kinds in @state.
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "compiler/Plan/Buffers.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

// Positions of one block; the kernels' kBlockTokens.
static constexpr int64_t kBlockTokens = 256;

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
  int64_t slots = *batch; // one a sequence that the plan holds at once
  planir::StateOp::create(builder, module.getLoc(), kBlockTokens, blocks, slots);

  StateBytes bytes;
  for (auto pool : llvm::make_early_inc_range(module.getOps<attn::PoolOp>())) {
    attn::CacheType type = pool.getType();
    int64_t units = type.isPaged() ? blocks : slots;
    SmallVector<int64_t> shape{units};
    llvm::append_range(shape, type.getShape());
    Place place;
    place.type = RankedTensorType::get(shape, type.getElement());
    place.stride = aligned(byteSize(place.type));
    int64_t &end = type.isPaged() ? bytes.paged : bytes.slotted;
    place.begin = end;
    place.members.assign(pool.getMembers().begin(), pool.getMembers().end());
    int64_t unitBytes = llvm::divideCeil(llvm::product_of(type.getShape()) * elementBits(type.getElement()), 8);
    for (int64_t layer : place.members) {
      planir::StateMemberOp::create(builder, pool.getLoc(), kindOf(type.getKind()), layer, type.isPaged() ? "cache" : "state",
                                    end, unitBytes, units);
      end += place.stride;
    }
    places[pool.getSymName()] = std::move(place);
  }
  return bytes;
}
