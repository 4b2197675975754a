// coll ops that are kernels of one rank, and those that move bytes between ranks when a kernel does it (`via peer`).
#include "dialects/Coll/Coll.h"
#include "codegen/KernelModels.h"
#include "codegen/PeerForm.h"
#include "codegen/RowConfig.h"
#include "codegen/kernels/coll/join.h"
#include "codegen/kernels/coll/own_rows.h"
#include "codegen/kernels/coll/pack.h"
#include "codegen/kernels/coll/part.h"
#include "codegen/kernels/coll/peer.h"
#include "codegen/kernels/coll/sum_row.h"
#include "codegen/kernels/coll/unpack.h"

using namespace llvm;
using namespace mlir;

namespace k31 {
namespace {

struct JoinModel : KernelOp::ExternalModel<JoinModel, coll::JoinOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::JoinOp>(o);
    OpReader read(o, target);
    kernels::join::Config c;
    c.capacity = read.number(dim(op.getResult(), 0), "rows");
    c.part = read.number(dim(op.getX(), 1), "columns of a rank");
    c.cols = read.number(dim(op.getResult(), 1), "columns");
    c.size = read.number(op.getSize(), "ranks");
    c.type = read.floatType(op.getX(), "x");
    return read.spec("coll.join", c, splitWork({0, 2 * bytesOf(op.getResult()), uint64_t(c.capacity)}));
  }
};

struct PartModel : KernelOp::ExternalModel<PartModel, coll::PartOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::PartOp>(o);
    OpReader read(o, target);
    kernels::part::Config c;
    const int64_t rows = dim(op.getX(), 0);
    c.rows = read.rows(rows);
    c.cols = read.number(dim(op.getX(), 1), "columns");
    c.part = read.number(dim(op.getResult(), 1), "columns of a rank");
    c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
    c.type = read.floatType(op.getX(), "x");
    return read.spec("coll.part", c, splitWork({0, 2 * bytesOf(op.getResult()), uint64_t(rows)}));
  }
};

struct OwnRowsModel : KernelOp::ExternalModel<OwnRowsModel, coll::OwnRowsOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::OwnRowsOp>(o);
    OpReader read(o, target);
    kernels::own_rows::Config c;
    c.cols = read.number(dim(op.getX(), 1), "columns");
    c.share = read.number(dim(op.getResult(), 0), "rows of a rank");
    c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
    c.type = read.floatType(op.getX(), "x");
    return read.spec("coll.own_rows", c, splitWork({0, 2 * bytesOf(op.getResult()), uint64_t(c.share)}));
  }
};

struct PackModel : KernelOp::ExternalModel<PackModel, coll::PackOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::PackOp>(o);
    OpReader read(o, target);
    kernels::pack::Config c;
    const int64_t rows = dim(op.getX(), 0);
    c.rows = read.rows(rows), c.room = read.number(rows, "rows");
    c.cols = read.number(dim(op.getX(), 1), "columns"), c.top_k = read.number(dim(op.getIds(), 1), "choices");
    c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
    c.size = read.number(op.getSize(), "ranks"), c.share = read.number(op.getShare(), "experts of a rank");
    c.type = read.floatType(op.getX(), "x");
    c.ranked = op.getCoordinate() != nullptr;
    c.groups = read.number(dim(op.getLive(), 0), "groups of rows");
    c.capacity = c.groups > 1 ? read.number(rows / c.groups, "rows of a group") : 0;
    return read.spec("coll.pack", c, splitWork({0, 2 * bytesOf(op.getPieces()), uint64_t(c.size)}));
  }
};

struct UnpackModel : KernelOp::ExternalModel<UnpackModel, coll::UnpackOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::UnpackOp>(o);
    OpReader read(o, target);
    kernels::unpack::Config c;
    const int64_t rows = dim(op.getRows(), 0);
    c.rows = read.rows(rows), c.size = read.number(dim(op.getPieces(), 0), "pieces");
    c.capacity = read.number(rows / dim(op.getPieces(), 0), "rows of a piece");
    c.cols = read.number(dim(op.getRows(), 1), "columns"), c.top_k = read.number(dim(op.getIds(), 1), "choices");
    c.type = read.floatType(op.getRows(), "the rows");
    return read.spec("coll.unpack", c, splitWork({0, 2 * bytesOf(op.getPieces()), uint64_t(c.capacity)}));
  }
};

// What every kernel that exchanges by peer needs to know of its area; a diagnostic when there are too many ranks.
FailureOr<kernels::peer::Config> peerConfig(OpReader &read, Operation *op, int64_t ranks, const Target &target) {
  if (ranks > kernels::kMaxPeers)
    return op->emitOpError() << "goes by peer over " << ranks << " ranks, at most " << kernels::kMaxPeers << " are possible";
  const kernels::PeerArea form = peerForm(target, read.number(ranks, "ranks"));
  kernels::peer::Config c;
  c.ranks = form.ranks, c.blocks = form.blocks, c.region = form.region;
  return c;
}

template <class Op> struct PeerModel : KernelOp::ExternalModel<PeerModel<Op>, Op> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    namespace peer = kernels::peer;
    constexpr bool exchange = std::is_same_v<Op, coll::DispatchOp> || std::is_same_v<Op, coll::CombineOp>;
    constexpr bool sums = std::is_same_v<Op, coll::AllReduceOp> || std::is_same_v<Op, coll::ReduceScatterOp>;
    auto op = cast<Op>(o);
    OpReader read(o, target);
    FailureOr<peer::Config> area = peerConfig(read, o, op.getSize(), target);
    if (failed(area))
      return failure();
    peer::Config c = *area;
    int64_t words = static_cast<int64_t>(bytesOf(op.getX()) / 16);
    if constexpr (sums)
      c.type = read.floatType(op.getX(), "x");
    if constexpr (std::is_same_v<Op, coll::AllReduceOp>)
      c.form = peer::by_pieces(words, c.ranks) ? peer::sum_pieces : peer::sum;
    else
      c.form = exchange ? peer::exchange : sums ? peer::scatter : peer::gather;
    if (c.pieces() > 1)
      words /= c.ranks;
    c.words = read.number(words, "words of a piece");
    int64_t unit = 0; // bytes
    if constexpr (exchange)
      unit = op.getUnit(), c.unit = read.number(unit / 16, "words of a row");
    if (bytesOf(op.getX()) != static_cast<uint64_t>(words) * c.pieces() * 16 || unit % 16)
      return op.emitOpError() << "goes by peer, which moves whole words of 16 bytes; found " << bytesOf(op.getX())
                              << " bytes for " << c.ranks << " ranks" << (exchange ? " in units of " + Twine(unit) : Twine());
    return read.spec("coll.peer", c, {1, "one task: it waits for the other ranks", {}});
  }
};

struct SumRowModel : KernelOp::ExternalModel<SumRowModel, coll::SumRowOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::SumRowOp>(o);
    OpReader read(o, target);
    FailureOr<kernels::peer::Config> area = peerConfig(read, o, op.getSize(), target);
    FailureOr<kernels::row::Config> row = rowConfig(read, op.rowInputs(), op.getResults(), op.getGroups(), op.getBody());
    if (failed(area) || failed(row))
      return failure();
    kernels::sum_row::Config c;
    c.peer = *area, c.row = *row;
    const int64_t rows = dim(op.getSum(), 0), bytes = static_cast<int64_t>(bytesOf(op.getSum())) / rows;
    c.peer.form = op.getScatter() ? kernels::peer::scatter : kernels::peer::sum;
    c.peer.type = read.floatType(op.getX(), "x");
    c.peer.words = read.number(bytes / 16, "words of a row");
    c.at = read.number(op.getAt(), "the sum"), c.rows = read.number(rows, "rows");
    if (bytes % 16 || c.peer.words > c.peer.region)
      return op.emitOpError() << "has rows of " << bytes << " bytes; they go by peer as whole words of 16 bytes, at most "
                              << c.peer.region << " of them";
    return read.spec("coll.sum_row", c, {1, "one task: it waits for the other ranks", {}});
  }
};

} // namespace

void registerCollKernelModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, coll::CollDialect *) {
    coll::JoinOp::attachInterface<JoinModel>(*context);
    coll::PartOp::attachInterface<PartModel>(*context);
    coll::OwnRowsOp::attachInterface<OwnRowsModel>(*context);
    coll::PackOp::attachInterface<PackModel>(*context);
    coll::UnpackOp::attachInterface<UnpackModel>(*context);
    coll::AllReduceOp::attachInterface<PeerModel<coll::AllReduceOp>>(*context);
    coll::ReduceScatterOp::attachInterface<PeerModel<coll::ReduceScatterOp>>(*context);
    coll::AllGatherOp::attachInterface<PeerModel<coll::AllGatherOp>>(*context);
    coll::DispatchOp::attachInterface<PeerModel<coll::DispatchOp>>(*context);
    coll::CombineOp::attachInterface<PeerModel<coll::CombineOp>>(*context);
    coll::SumRowOp::attachInterface<SumRowModel>(*context);
  });
}

} // namespace k31
