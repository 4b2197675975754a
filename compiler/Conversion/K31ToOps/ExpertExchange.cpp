#include "compiler/Conversion/K31ToOps/ExpertExchange.h"
#include "compiler/LinkCost.h"
#include "dialects/Moe/Moe.h"

using namespace mlir;

namespace k31 {

static constexpr int64_t kUnit = 16; // bytes that pieces are counted in, codegen/kernels/coll/piece.h

Value takeOwnRows(OpsBuilder &o, Value x) {
  if (o.state.mesh.tp == 1)
    return x;
  auto own = coll::OwnRowsOp::create(o.b, x.getLoc(), x, o.live, o.tensorRank, static_cast<uint64_t>(o.state.mesh.tp));
  o.live = own.getOwnLive();
  return own.getResult();
}

ChosenRows ExchangeLeg::there(OpsBuilder &o, const ChosenRows &rows) {
  const int64_t size = sizeOf(o.state.mesh, axis), choices = OpsBuilder::columnsOf(rows.ids);
  auto x = cast<RankedTensorType>(rows.x.getType());
  const int64_t T = x.getDimSize(0), bytes = coll::pieceBytes(T, x.getDimSize(1), x.getElementType(), choices);
  Type i32 = o.b.getI32Type(), u8 = o.b.getIntegerType(8, false);
  auto type = [](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
  const std::string name = "block_sparse_moe." + coll::stringifyAxis(axis).str() + ".";
  auto pack = coll::PackOp::create(o.b, o.at(name + "pack"), type({size, bytes}, u8), type({size}, i32), type({T, size}, i32),
                                   rows.x, rows.ids, rows.weights, rows.live, axis == coll::Axis::node ? o.expertRank : Value(),
                                   static_cast<uint64_t>(size), static_cast<uint64_t>(share));
  auto pieces = coll::DispatchOp::create(o.b, o.at(name + "dispatch"), pack.getPieces(), pack.getUnits(), axis,
                                         static_cast<uint64_t>(size), static_cast<uint64_t>(kUnit));
  auto out =
      coll::UnpackOp::create(o.b, o.at(name + "unpack"), x.clone({size * T, x.getDimSize(1)}), type({size * T, choices}, i32),
                             type({size * T, choices}, o.f32()), type({size}, i32), pieces);
  slot = pack.getSlot(), sent = rows.live, came = out.getLive();
  return {out.getRows(), out.getIds(), out.getWeights(), came};
}

Value ExchangeLeg::back(OpsBuilder &o, Value results) {
  const int64_t size = sizeOf(o.state.mesh, axis);
  auto type = cast<RankedTensorType>(results.getType());
  const int64_t row = type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
  const std::string name = "block_sparse_moe." + coll::stringifyAxis(axis).str() + ".";
  auto parts = coll::CombineOp::create(o.b, o.at(name + "combine"), results, came, axis, static_cast<uint64_t>(size),
                                       static_cast<uint64_t>(row));
  return moe::CombineOp::create(o.b, o.at(name + "sum"), type.clone({type.getDimSize(0) / size, type.getDimSize(1)}), parts,
                                Value(), slot, sent);
}

} // namespace k31
