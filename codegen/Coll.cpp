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

static FailureOr<KernelSpec> select(coll::JoinOp op, OpReader &read) {
  kernels::join::Config c;
  c.capacity = read.number(dim(op.getResult(), 0), "rows");
  c.part = read.number(dim(op.getX(), 1), "columns of a rank");
  c.cols = read.number(dim(op.getResult(), 1), "columns");
  c.size = read.number(op.getSize(), "ranks");
  c.type = read.floatType(op.getX(), "x");
  return read.spec("coll.join", c, splitCopy(op.getResult(), c.capacity));
}

static FailureOr<KernelSpec> select(coll::PartOp op, OpReader &read) {
  kernels::part::Config c;
  const int64_t rows = dim(op.getX(), 0);
  c.rows = read.rows(rows);
  c.cols = read.number(dim(op.getX(), 1), "columns");
  c.part = read.number(dim(op.getResult(), 1), "columns of a rank");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
  c.type = read.floatType(op.getX(), "x");
  return read.spec("coll.part", c, splitCopy(op.getResult(), rows));
}

static FailureOr<KernelSpec> select(coll::OwnRowsOp op, OpReader &read) {
  kernels::own_rows::Config c;
  c.cols = read.number(dim(op.getX(), 1), "columns");
  c.share = read.number(dim(op.getResult(), 0), "rows of a rank");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
  c.type = read.floatType(op.getX(), "x");
  return read.spec("coll.own_rows", c, splitCopy(op.getResult(), c.share));
}

static FailureOr<KernelSpec> select(coll::PackOp op, OpReader &read) {
  kernels::pack::Config c;
  const int64_t rows = dim(op.getX(), 0);
  c.rows = read.rows(rows), c.room = read.number(rows, "rows");
  c.cols = read.number(dim(op.getX(), 1), "columns"), c.top_k = read.number(dim(op.getIds(), 1), "choices");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
  c.size = read.number(op.getSize(), "ranks"), c.share = read.number(op.getShare(), "experts of a rank");
  c.type = read.floatType(op.getX(), "x");
  c.ranked = op.getCoordinate() != nullptr;
  readGroups(read, op.getLive(), rows, c);
  return read.spec("coll.pack", c, splitCopy(op.getPieces(), c.size));
}

static FailureOr<KernelSpec> select(coll::UnpackOp op, OpReader &read) {
  kernels::unpack::Config c;
  const int64_t rows = dim(op.getRows(), 0);
  c.rows = read.rows(rows), c.size = read.number(dim(op.getPieces(), 0), "pieces");
  c.capacity = read.number(rows / dim(op.getPieces(), 0), "rows of a piece");
  c.cols = read.number(dim(op.getRows(), 1), "columns"), c.top_k = read.number(dim(op.getIds(), 1), "choices");
  c.type = read.floatType(op.getRows(), "the rows");
  return read.spec("coll.unpack", c, splitCopy(op.getPieces(), c.capacity));
}

// What every kernel that exchanges by peer needs to know of its area; a diagnostic when there are too many ranks.
static FailureOr<kernels::peer::Config> peerConfig(OpReader &read, int64_t ranks) {
  if (ranks > kernels::kMaxPeers)
    return read.refuse() << "goes by peer over " << ranks << " ranks, at most " << kernels::kMaxPeers << " are possible";
  const kernels::PeerArea form = peerForm(read.target, read.number(ranks, "ranks"));
  kernels::peer::Config c;
  c.ranks = form.ranks, c.blocks = form.blocks, c.region = form.region;
  return c;
}

template <class Op> static FailureOr<KernelSpec> selectPeer(Op op, OpReader &read) {
  namespace peer = kernels::peer;
  constexpr bool exchange = std::is_same_v<Op, coll::DispatchOp> || std::is_same_v<Op, coll::CombineOp>;
  constexpr bool sums = std::is_same_v<Op, coll::AllReduceOp> || std::is_same_v<Op, coll::ReduceScatterOp>;
  FailureOr<peer::Config> area = peerConfig(read, op.getSize());
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
    return read.refuse() << "goes by peer, which moves whole words of 16 bytes; found " << bytesOf(op.getX()) << " bytes for "
                         << c.ranks << " ranks" << (exchange ? " in units of " + Twine(unit) : Twine());
  return read.spec("coll.peer", c, {1, "one task: it waits for the other ranks", {}});
}
static FailureOr<KernelSpec> select(coll::AllReduceOp op, OpReader &read) { return selectPeer(op, read); }
static FailureOr<KernelSpec> select(coll::ReduceScatterOp op, OpReader &read) { return selectPeer(op, read); }
static FailureOr<KernelSpec> select(coll::AllGatherOp op, OpReader &read) { return selectPeer(op, read); }
static FailureOr<KernelSpec> select(coll::DispatchOp op, OpReader &read) { return selectPeer(op, read); }
static FailureOr<KernelSpec> select(coll::CombineOp op, OpReader &read) { return selectPeer(op, read); }

static FailureOr<KernelSpec> select(coll::SumRowOp op, OpReader &read) {
  FailureOr<kernels::peer::Config> area = peerConfig(read, op.getSize());
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
    return read.refuse() << "has rows of " << bytes << " bytes; they go by peer as whole words of 16 bytes, at most "
                         << c.peer.region << " of them";
  if (read.target.isCuda() && rows > c.peer.blocks)
    return read.refuse() << "has " << rows << " rows, one a block, and of blocks that wait for their peers " << c.peer.blocks
                         << " run at once";
  return read.spec("coll.sum_row", c, {1, "one task: it waits for the other ranks", {}});
}

void registerCollKernelModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, coll::CollDialect *) {
    attachModels<coll::JoinOp, coll::PartOp, coll::OwnRowsOp, coll::PackOp, coll::UnpackOp, coll::AllReduceOp,
                 coll::ReduceScatterOp, coll::AllGatherOp, coll::DispatchOp, coll::CombineOp, coll::SumRowOp>(context);
  });
}

} // namespace k31
