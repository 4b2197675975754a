// Reads --mesh, fills in what it leaves out, and puts k31.mesh on the module.
#include "compiler/Mesh.h"
#include "compiler/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

namespace k31 {
#define GEN_PASS_DEF_ASSIGNPARALLELISM
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

constexpr int64_t kMaxRanks = 1 << 16;

struct AssignParallelismPass : impl::AssignParallelismBase<AssignParallelismPass> {
  using AssignParallelismBase::AssignParallelismBase;

  InFlightDiagnostic refuse() { return getOperation().emitError("--mesh ") << mesh << ": "; }

  FailureOr<Mesh> parse() {
    Mesh out;
    std::set<StringRef> given;
    SmallVector<StringRef> items;
    if (!mesh.empty())
      StringRef(mesh).split(items, ',');
    for (StringRef item : items) {
      auto [name, text] = item.split('=');
      auto axes = out.axes();
      auto *axis = llvm::find_if(axes, [&](const auto &known) { return known.first == name; });
      if (axis == axes.end())
        return refuse() << "no axis \"" << name << "\", expected tp, dp, ep, pp or node";
      if (text.getAsInteger(10, *axis->second) || *axis->second < 1 || *axis->second > kMaxRanks)
        return refuse() << name << " is \"" << text << "\", expected an integer from 1 to " << kMaxRanks;
      if (!given.insert(axis->first).second)
        return refuse() << name << " is given twice";
    }
    if (!given.count("dp")) // enough groups to hold the experts' ranks
      out.dp = std::max<int64_t>(1, out.ep / out.tp);
    if (!given.count("ep"))
      out.ep = out.tp * out.dp;
    if (!given.count("node"))
      out.node = out.ranks();
    return out;
  }

  LogicalResult check(const Mesh &m) {
    if (m.ranks() > kMaxRanks)
      return refuse() << m.ranks() << " ranks, at most " << kMaxRanks << " are possible";
    if ((m.tp * m.dp) % m.ep)
      return refuse() << "ep=" << m.ep << " does not divide the " << m.tp * m.dp << " ranks of a stage (tp x dp)";
    if (m.ranks() % m.node)
      return refuse() << "node=" << m.node << " does not divide the " << m.ranks() << " ranks";
    if (m.ep > m.tp ? m.ep % m.tp : m.tp % m.ep)
      return refuse() << "ep=" << m.ep << " and tp=" << m.tp
                      << ": a group of experts holds whole tp groups or lies inside one, so one "
                      << "must divide the other";
    return success();
  }

  void runOnOperation() override {
    FailureOr<Mesh> m = parse();
    if (failed(m) || failed(check(*m)))
      return signalPassFailure();
    writeMesh(getOperation(), *m);
  }
};

} // namespace
} // namespace k31
