// A sum over the ranks that goes by peer and the row op behind it become coll.sum_row: one launch, in which a block goes on with
// the rows that it has summed.
#include "codegen/PeerForm.h"
#include "codegen/kernels/coll/peer.h"
#include "compiler/Options.h"
#include "compiler/Transforms/FusedRegion.h"
#include "compiler/Transforms/Fusions.h"
#include "compiler/Transforms/Rowwise.h"
#include "dialects/Coll/Coll.h"
#include "dialects/Support/Notes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace k31 {
namespace {

// More rows fill the GPU by themselves: what a launch less saves is then little beside what few blocks cost.
constexpr int64_t kFewRows = 64;

struct Sum {
  Operation *op = nullptr;
  Value x, result;
  coll::Axis axis;
  int64_t size = 0;
  bool scatter = false;

  static std::optional<Sum> of(Operation *op) {
    if (auto sum = dyn_cast<coll::AllReduceOp>(op); sum && sum.getTransport() == coll::Transport::peer)
      return Sum{op, sum.getX(), sum.getResult(), sum.getAxis(), static_cast<int64_t>(sum.getSize()), false};
    if (auto sum = dyn_cast<coll::ReduceScatterOp>(op); sum && sum.getTransport() == coll::Transport::peer)
      return Sum{op, sum.getX(), sum.getResult(), sum.getAxis(), static_cast<int64_t>(sum.getSize()), true};
    return std::nullopt;
  }
};

class SumFuser {
public:
  SumFuser(std::string wish, const Target &target) : wish(std::move(wish)), target(target) {}

  // Fuses it with the first row op that can be; notes why those before it cannot.
  void visit(const Sum &sum) const {
    Block *block = sum.op->getBlock();
    SmallVector<Operation *> readers;
    for (Operation *user : sum.result.getUsers())
      if (user->getBlock() == block && Rowwise::of(user).op && !llvm::is_contained(readers, user))
        readers.push_back(user);
    llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *reader : readers) {
      const Rowwise row = Rowwise::of(reader);
      const std::string why = obstacleTo(sum, row);
      if (why.empty())
        return fuse(sum, row);
      noteApart(reader, sum.op, why);
    }
  }

private:
  std::string obstacleTo(const Sum &sum, const Rowwise &row) const {
    const auto type = cast<RankedTensorType>(sum.result.getType());
    if (type.getRank() != 2 || row.shape() != type.getShape())
      return "it does not read the sum element by element";
    const int64_t rows = type.getDimSize(0), bytes = static_cast<int64_t>(bytesOf(sum.result)) / rows;
    const kernels::PeerArea form = peerForm(target, static_cast<int32_t>(sum.size));
    if (llvm::count(row.inputs, sum.result) > 1)
      return "it reads the sum twice";
    if (!sum.scatter && kernels::peer::by_pieces(rows * bytes / 16, sum.size))
      return "a long sum goes by pieces, and rows come back whole only at its end";
    if (bytes % 16)
      return llvm::formatv("rows of {0} bytes are no whole words of 16", bytes);
    if (bytes / 16 > form.region)
      return llvm::formatv("a row has {0} bytes, of which a block writes {1} at a time", bytes, 16 * int64_t{form.region});
    if (target.isCuda() && rows > form.blocks)
      return llvm::formatv("{0} rows, one a block, and of blocks that wait for their peers {1} run at once", rows, form.blocks);
    if (!place(sum, row))
      return "others read the sum before the rest of its operands is known";
    if (wish == "off")
      return "asked for by --fuse-sums";
    if (wish != "on" && !target.isCuda())
      return "a launch of the host costs less than what its other threads give the row op";
    if (wish != "on" && rows > kFewRows)
      return llvm::formatv("{0} rows: a launch less saves little", rows);
    return "";
  }

  static Operation *place(const Sum &sum, const Rowwise &row) {
    Operation *at = placeOf(sum.op, row), *live = row.live.getDefiningOp();
    const bool known = at != sum.op || !live || live->getBlock() != at->getBlock() || live->isBeforeInBlock(at);
    return known ? at : nullptr;
  }

  static void fuse(const Sum &sum, const Rowwise &row) {
    OpBuilder b(place(sum, row));
    const auto [inputs, at] = row.inputsBut(sum.result);
    SmallVector<Type> types{sum.result.getType()};
    llvm::append_range(types, row.op->getResultTypes());
    auto fused = coll::SumRowOp::create(b, sum.op->getLoc(), types, sum.x, row.live, inputs, sum.axis, sum.size, sum.scatter, at,
                                        row.fused, row.groups);
    fused.getBody().takeBody(*row.body);
    noteSum(fused, sum.op, row.op);
    row.op->replaceAllUsesWith(fused.getResults());
    row.op->erase();
    sum.op->replaceAllUsesWith(ValueRange(fused.getSum()));
    sum.op->erase();
  }

  const std::string wish;
  const Target &target;
};

} // namespace

LogicalResult fuseSums(ModuleOp module, const Target &target) {
  FailureOr<StringRef> wish = optionWord(module, "fuse_sums", {"auto", "on", "off"});
  if (failed(wish))
    return failure();
  const SumFuser fuser(wish->str(), target);
  SmallVector<Operation *> sums;
  module.walk([&](Operation *op) {
    if (Sum::of(op))
      sums.push_back(op);
  });
  for (Operation *sum : sums) // looked at only now: a fusion replaces what the next sum adds up
    fuser.visit(*Sum::of(sum));
  return success();
}

} // namespace k31
