#include "compiler/Transforms/PlacementNotes.h"
#include "codegen/Operands.h"
#include "compiler/LinkCost.h"
#include "compiler/Sizes.h"
#include "dialects/Moe/Moe.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace k31 {
namespace {

class Placement {
public:
  Placement(ModuleOp module, const Mesh &mesh, bool cuda) : module(module), symbols(module), mesh(mesh), cuda(cuda) {}

  void run() {
    module.walk([&](Operation *op) {
      noteShare(op);
      noteCollective(op);
    });
  }

private:
  // Of all parts together: the rows, the columns or the experts that `of` names.
  int64_t wholeUnits(nn::StackOp stack, coll::ShardOf of) {
    int64_t units = 0;
    for (auto part : stack.getParts().getAsRange<FlatSymbolRefAttr>()) {
      auto tensor = symbols.lookup<nn::TensorOp>(part.getValue());
      auto type = cast<RankedTensorType>(tensor.getType());
      if (of != coll::ShardOf::rows)
        return of == coll::ShardOf::columns ? type.getShape().back() : type.getShape().front();
      units += type.getDimSize(tensor.hasExperts());
    }
    return units;
  }

  // Of all weights that an op reads the largest speaks for the rest, which are cut alike: scales, biases. Of a merged one each
  // stack has a share of its own.
  void noteShare(Operation *op) {
    if (auto linear = dyn_cast<nn::LinearOp>(op))
      if (auto weight = linear.getW().getDefiningOp<nn::WeightOp>())
        if (auto merged = symbols.lookup<nn::MergedStackOp>(weight.getStack()))
          return noteShares(op, merged);
    nn::StackOp largest;
    uint64_t held = 0, most = 0;
    for (Value operand : op->getOperands())
      if (auto weight = operand.getDefiningOp<nn::WeightOp>()) {
        auto stack = symbols.lookup<nn::StackOp>(weight.getStack());
        const uint64_t bytes = byteSize(stack.getType());
        held += bytes;
        if (!largest || bytes > most)
          largest = stack, most = bytes;
      }
    if (largest && (largest.getShardAxis() || isa<nn::LinearOp>(op))) // norms, taps and tables are small; a rank reads products
      note(op, shareOf(op, largest, held));
  }

  void noteShares(Operation *op, nn::MergedStackOp merged) {
    for (auto name : merged.getStacks().getAsRange<FlatSymbolRefAttr>()) {
      auto stack = symbols.lookup<nn::StackOp>(name.getValue());
      Note share = shareOf(op, stack, byteSize(stack.getType()));
      StringRef label = name.getValue();
      label.consume_front("stack.");
      share.choice = (label + ": " + share.choice).str();
      note(op, share);
    }
  }

  Note shareOf(Operation *op, nn::StackOp stack, uint64_t held) {
    if (!stack.getShardAxis())
      return {
          "share",
          "whole on every rank",
          llvm::formatv("{0} bytes; every rank needs the whole result, and parts of it would have to be gathered", held).str(),
          {}};
    const auto type = cast<RankedTensorType>(stack.getType());
    const coll::Axis axis = *stack.getShardAxis();
    const coll::ShardOf of = *stack.getShardOf();
    const std::string units = of == coll::ShardOf::members ? "experts" : coll::stringifyShardOf(of).str();
    const int64_t own = of == coll::ShardOf::rows      ? llvm::sum_of(stack.getRows())
                        : of == coll::ShardOf::columns ? type.getShape().back()
                                                       : type.getShape().front();
    const std::string reason = llvm::formatv("{0} of {1} {2} a rank, {3} bytes; {4}", own, wholeUnits(stack, of), units, held,
                                             of == coll::ShardOf::members ? groupOfExperts()
                                             : of == coll::ShardOf::rows || !isa<nn::LinearOp>(op)
                                                 ? "a rank makes its own columns of the result"
                                                 : "a rank has these columns of x; the products of all ranks add up");
    return {"share", (units + " over " + coll::stringifyAxis(axis)).str(), reason, {}};
  }

  std::string groupOfExperts() {
    const std::string group = llvm::formatv("a group of {0} ranks holds all experts", mesh.ep);
    if (mesh.edp() > 1)
      return llvm::formatv("{0}, {1} dp groups of {2} tp ranks, whose rows meet there", group, mesh.edp(), mesh.tp);
    if (mesh.ep < mesh.tp)
      return llvm::formatv("{0}; {1} copies in a tp group", group, mesh.tp / mesh.ep);
    return group + ", which are a tp group";
  }

  // Of those between stages; Transports.cpp has the others.
  void noteCollective(Operation *op) {
    if (auto send = dyn_cast<coll::SendOp>(op))
      note(op, toStage(bytesOf(send.getX())));
    else if (auto receive = dyn_cast<coll::RecvOp>(op))
      note(op, toStage(bytesOf(receive.getResult())));
  }

  Note toStage(uint64_t bytes) {
    return {"transport",
            "library",
            llvm::formatv("{0} bytes to the next of {1} stages, {2}; {3}", bytes, mesh.pp,
                          insideHost(mesh, coll::Axis::pp) ? "on one host" : "from host to host",
                          cuda ? "NCCL" : "shared memory or MPI")
                .str(),
            {}};
  }

  ModuleOp module;
  SymbolTable symbols;
  const Mesh mesh;
  const bool cuda;
};

} // namespace

void notePlacement(ModuleOp module, bool cuda) {
  if (!module->hasAttr("k31.mesh"))
    return;
  FailureOr<Mesh> mesh = readMesh(module);
  if (succeeded(mesh) && mesh->ranks() > 1)
    Placement(module, *mesh, cuda).run();
}

} // namespace k31
