#include "compiler/Transforms/Transports.h"
#include "codegen/Operands.h"
#include "codegen/kernels/coll/peer_area.h"
#include "compiler/LinkCost.h"
#include "compiler/Options.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace k31 {
namespace {

constexpr const char *kHost = "shared memory or MPI; sums in the order of ranks, so that all get the same bits";

// What an exchange moves; `pieces` that the ranks share out must be whole words each.
struct Moved {
  coll::Axis axis;
  Exchange exchange;
  uint64_t bytes; // as exchangeSeconds() counts them
  uint64_t pieceBytes;
  uint64_t unit = 0; // of live rows
  bool sums = false;
};

std::optional<Moved> movedBy(Operation *op) {
  return TypeSwitch<Operation *, std::optional<Moved>>(op)
      .Case([](coll::AllReduceOp sum) {
        const uint64_t bytes = bytesOf(sum.getX());
        return Moved{sum.getAxis(), Exchange::allReduce, bytes, bytes, 0, true};
      })
      .Case([](coll::AllGatherOp gather) {
        return Moved{gather.getAxis(), Exchange::allGather, bytesOf(gather.getResult()), bytesOf(gather.getX())};
      })
      .Case([](coll::ReduceScatterOp scatter) {
        return Moved{scatter.getAxis(), Exchange::reduceScatter, bytesOf(scatter.getX()), bytesOf(scatter.getResult()), 0, true};
      })
      .Case<coll::DispatchOp, coll::CombineOp>([](auto exchange) {
        const uint64_t bytes = bytesOf(exchange.getX());
        return Moved{exchange.getAxis(), Exchange::allToAll, bytes, bytes / exchange.getSize(), exchange.getUnit()};
      })
      .Default([](Operation *) { return std::nullopt; });
}

class Transports {
public:
  Transports(const Mesh &mesh, std::string wish, bool cuda) : mesh(mesh), wish(std::move(wish)), cuda(cuda) {}

  void choose(Operation *op) {
    const std::optional<Moved> moved = movedBy(op);
    if (!moved)
      return;
    const std::string obstacle = obstacleTo(op, *moved);
    coll::Transport chosen = coll::Transport::library;
    if (obstacle.empty() && (wish == "peer" || (wish == "auto" && cuda && cheaper(*moved))))
      chosen = coll::Transport::peer;
    if (chosen != coll::Transport::library)
      op->setAttr("transport", coll::TransportAttr::get(op->getContext(), chosen));
    note(op, noteOf(*moved, chosen, obstacle));
  }

private:
  double seconds(const Moved &moved, coll::Transport transport) const {
    return exchangeSeconds(moved.exchange, transport, moved.bytes, sizeOf(mesh, moved.axis), insideHost(mesh, moved.axis));
  }
  bool cheaper(const Moved &moved) const {
    return seconds(moved, coll::Transport::peer) < seconds(moved, coll::Transport::library);
  }

  // Why there is no kernel for it; empty when there is.
  std::string obstacleTo(Operation *op, const Moved &moved) const {
    const int64_t ranks = sizeOf(mesh, moved.axis);
    const Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
    if (!insideHost(mesh, moved.axis))
      return "peers are ranks of one host";
    if (ranks > kernels::kMaxPeers)
      return llvm::formatv("at most {0} ranks are peers", kernels::kMaxPeers);
    if (moved.pieceBytes % 16 || moved.unit % 16)
      return llvm::formatv("pieces of {0} bytes are no whole words of 16", moved.pieceBytes);
    if (moved.sums && !element.isF32() && !element.isBF16())
      return "peers add up fp32 and bf16";
    return "";
  }

  Note noteOf(const Moved &moved, coll::Transport chosen, const std::string &obstacle) const {
    std::string why = chosen == coll::Transport::peer ? "a kernel of the plan writes to its peers" : cuda ? "NCCL" : kHost;
    if (wish == "peer" && obstacle.empty())
      why += "; asked for by --transport";
    else if (wish == "library" && cuda && obstacle.empty() && cheaper(moved))
      why += "; --transport auto would take peer";
    else if (!obstacle.empty() && insideHost(mesh, moved.axis))
      why += "; " + obstacle;
    if (!cuda)
      return {"transport",
              coll::stringifyTransport(chosen).str(),
              llvm::formatv("{0} bytes {1}; {2}", moved.bytes, groupText(mesh, moved.axis), why).str(),
              {}};
    SmallVector<coll::Transport> possible{coll::Transport::library};
    if (obstacle.empty())
      possible.push_back(coll::Transport::peer);
    return transportNote(mesh, moved.axis, moved.exchange, moved.bytes, possible, chosen, why);
  }

  const Mesh mesh;
  const std::string wish;
  const bool cuda;
};

} // namespace

bool isByLibrary(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<coll::AllReduceOp, coll::AllGatherOp, coll::ReduceScatterOp, coll::DispatchOp, coll::CombineOp>(
          [](auto collective) { return collective.getTransport() == coll::Transport::library; })
      .Default([](Operation *) { return false; });
}

LogicalResult chooseTransports(ModuleOp module, bool cuda) {
  if (!module->hasAttr("k31.mesh"))
    return success();
  FailureOr<Mesh> mesh = readMesh(module);
  FailureOr<StringRef> wish = optionWord(module, "transport", {"library", "peer", "auto"});
  if (failed(mesh) || failed(wish))
    return failure();
  Transports transports(*mesh, wish->str(), cuda);
  if (mesh->ranks() > 1)
    module.walk([&](Operation *op) { transports.choose(op); });
  return success();
}

} // namespace k31
