// The convolution, the recurrence and the gated norm of a KDA layer become attn.kda_decode where tokens go one by one.
#include "codegen/Target.h"
#include "codegen/kernels/attn/kda_decode.h"
#include "compiler/Transforms/FusedRegion.h"
#include "compiler/Transforms/Fusions.h"
#include "compiler/Transforms/Rowwise.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Support/Notes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace k31 {
namespace {

// The convolution whose result's columns are q, k and v, one behind the other, and nothing else; null when there is none.
attn::ShortConvOp convolutionOf(attn::KDAOp kda) {
  attn::ShortConvOp conv;
  const int64_t cols = dim(kda.getQ(), 1);
  const Value parts[] = {kda.getQ(), kda.getK(), kda.getV()};
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto view = part.getDefiningOp<nn::ColumnsOp>();
    auto of = view ? view.getSource().getDefiningOp<attn::ShortConvOp>() : attn::ShortConvOp();
    const int64_t begin = static_cast<int64_t>(i) * cols;
    if (!of || (conv && of != conv) || !view->hasOneUse() || static_cast<int64_t>(view.getBegin()) != begin)
      return {};
    conv = of;
  }
  const bool all = conv->getBlock() == kda->getBlock() && conv.getBatch() == kda.getBatch() &&
                   dim(conv.getResult(), 1) == 3 * cols && llvm::range_size(conv->getUsers()) == 3;
  return all ? conv : attn::ShortConvOp();
}

// The row op that sums over the heads and alone reads the result; an empty one when there is none.
Rowwise normOf(attn::KDAOp kda) {
  if (!kda->hasOneUse())
    return {};
  const Rowwise row = Rowwise::of(*kda->user_begin());
  const bool fits = row.isRow && row.op->getBlock() == kda->getBlock() && row.groups == static_cast<int64_t>(kda.getHeads()) &&
                    row.live != kda.getResult() && row.shape() == tensorOf(kda.getResult()).getShape() &&
                    !row.body->front().getOps<nn::SumOp>().empty();
  return fits ? row : Rowwise();
}

std::string obstacleTo(attn::KDAOp kda, attn::ShortConvOp conv, const Target &target) {
  if (const auto chunk = static_cast<int64_t>(kda.getChunk()); chunk != 1)
    return llvm::formatv("segments go by chunks of {0} tokens, and the convolution cuts their rows in another way", chunk);
  if (!conv.getCache().hasOneUse() || !kda.getState().hasOneUse())
    return "others use the window or the state in between";
  const int64_t size = dim(kda.getQ(), 1) / static_cast<int64_t>(kda.getHeads());
  if (target.isCuda() && size > kernels::kda_decode::kMaxCudaDim)
    return llvm::formatv("a head has {0} values, and the registers of a block hold a state of {1} x {1}", size,
                         kernels::kda_decode::kMaxCudaDim);
  return "";
}

void fuse(attn::KDAOp kda, attn::ShortConvOp conv, const Rowwise &row) {
  OpBuilder b(row.op); // where the row op's other operands are known
  const auto [inputs, at] = row.inputsBut(kda.getResult());
  auto elementOf = [](Value v) { return tensorOf(v).getElementType(); };
  auto fused =
      attn::KDADecodeOp::create(b, kda.getLoc(), row.op->getResultTypes(), conv.getX(), conv.getW(), conv.getCache(), kda.getG(),
                                kda.getBeta(), kda.getState(), kda.getBatch(), inputs, kda.getHeads(), elementOf(kda.getQ()),
                                elementOf(kda.getResult()), at, joinFused(b.getContext(), {conv.getFusedAttr(), row.fused}));
  fused.getBody().takeBody(*row.body);
  fused.getActivation().takeBody(conv.getEpilogue());
  inheritNotes(fused, {conv, kda, row.op});
  const uint64_t between = bytesOf(conv.getResult()) + bytesOf(kda.getResult());
  note(fused,
       {"fusion",
        "attn.short_conv, attn.kda and the row op on its heads",
        llvm::formatv("q, k, v and what the recurrence gives are neither stored nor read back: {0} bytes and two launches less",
                      2 * between),
        {}});
  SmallVector<Operation *> views;
  for (Value part : {kda.getQ(), kda.getK(), kda.getV()})
    views.push_back(part.getDefiningOp());
  row.op->replaceAllUsesWith(fused.getResults());
  row.op->erase();
  kda->erase();
  for (Operation *view : views)
    view->erase();
  conv->erase();
}

} // namespace

void fuseKDADecode(ModuleOp module, const Target &target) {
  SmallVector<attn::KDAOp> ops;
  module.walk([&](attn::KDAOp op) { ops.push_back(op); });
  for (attn::KDAOp kda : ops) {
    attn::ShortConvOp conv = convolutionOf(kda);
    const Rowwise row = normOf(kda);
    if (!conv || !row.op)
      continue;
    const std::string why = obstacleTo(kda, conv, target);
    if (why.empty())
      fuse(kda, conv, row);
    else
      noteApart(kda, conv, why);
  }
}

} // namespace k31
