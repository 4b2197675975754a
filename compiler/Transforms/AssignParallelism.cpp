// Reads --mesh, fills in what it leaves out, and puts k31.mesh on the module.
#include "compiler/Passes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace k31 {
#define GEN_PASS_DEF_ASSIGNPARALLELISM
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

constexpr StringRef kAxes[] = {"tp", "dp", "ep", "pp", "node"};
constexpr int64_t kMaxRanks = 1 << 16;

// World size is tp x dp x pp; experts are split over ep ranks of a stage; node ranks share a host.
struct Mesh {
  std::map<StringRef, int64_t> given;
  int64_t of(StringRef axis, int64_t absent) const {
    auto it = given.find(axis);
    return it == given.end() ? absent : it->second;
  }
  int64_t tp() const { return of("tp", 1); }
  // Enough groups to hold the experts' ranks.
  int64_t dp() const { return of("dp", std::max<int64_t>(1, of("ep", 1) / tp())); }
  int64_t ep() const { return of("ep", tp() * dp()); }
  int64_t pp() const { return of("pp", 1); }
  int64_t ranks() const { return tp() * dp() * pp(); }
  int64_t node() const { return of("node", ranks()); }
};

struct AssignParallelismPass : impl::AssignParallelismBase<AssignParallelismPass> {
  using AssignParallelismBase::AssignParallelismBase;

  InFlightDiagnostic refuse() { return getOperation().emitError("--mesh ") << mesh << ": "; }

  FailureOr<Mesh> parse() {
    Mesh out;
    SmallVector<StringRef> items;
    StringRef(mesh).split(items, ',', -1, /*KeepEmpty=*/false);
    for (StringRef item : items) {
      auto [axis, text] = item.split('=');
      const StringRef *known = llvm::find(kAxes, axis);
      int64_t size = 0;
      if (known == std::end(kAxes))
        return refuse() << "no axis \"" << axis << "\", expected tp, dp, ep, pp or node";
      if (text.getAsInteger(10, size) || size < 1 || size > kMaxRanks)
        return refuse() << axis << " is \"" << text << "\", expected an integer from 1 to " << kMaxRanks;
      if (!out.given.emplace(*known, size).second)
        return refuse() << axis << " is given twice";
    }
    return out;
  }

  LogicalResult check(const Mesh &m) {
    if ((m.tp() * m.dp()) % m.ep())
      return refuse() << "ep=" << m.ep() << " does not divide the " << m.tp() * m.dp() << " ranks of a stage (tp x dp)";
    if (m.ranks() % m.node())
      return refuse() << "node=" << m.node() << " does not divide the " << m.ranks() << " ranks";
    if (m.ranks() != 1)
      return refuse() << "this build plans one rank, not " << m.ranks() << "; leave --mesh out";
    return success();
  }

  void runOnOperation() override {
    FailureOr<Mesh> m = parse();
    if (failed(m) || failed(check(*m)))
      return signalPassFailure();
    Builder b(&getContext());
    const int64_t sizes[] = {m->tp(), m->dp(), m->ep(), m->pp(), m->node()};
    SmallVector<NamedAttribute> attrs;
    for (auto [axis, size] : llvm::zip_equal(kAxes, sizes))
      attrs.push_back(b.getNamedAttr(axis, b.getI64IntegerAttr(size)));
    getOperation()->setAttr("k31.mesh", b.getDictionaryAttr(attrs));
  }
};

} // namespace
} // namespace k31
