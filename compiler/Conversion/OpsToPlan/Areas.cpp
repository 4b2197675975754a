// Where the ranks of an axis meet that exchange rows by themselves.
#include "codegen/ConfigFields.h"
#include "codegen/kernels/coll/peer.h"
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "dialects/Coll/Coll.h"
#include "runtime/schema/peers.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

// The same table twice: kernels include nothing of the runtime.
static_assert(sizeof(kernels::PeerTable) == sizeof(plan::PeerTable) && kernels::kMaxPeers == plan::kMaxPeers);
static_assert(offsetof(kernels::PeerTable, rank) == offsetof(plan::PeerTable, rank) &&
              offsetof(kernels::PeerTable, failed) == offsetof(plan::PeerTable, failed) &&
              offsetof(kernels::PeerTable, wait) == offsetof(plan::PeerTable, wait));

FailureOr<Areas::Area> Areas::of(Operation *op, DictionaryAttr kernel) {
  kernels::peer::Config config;
  auto fields = kernel.getAs<DictionaryAttr>("config");
  if (!fields)
    return op->emitOpError("has a kernel without a config, which says what its area holds");
  if (auto inner = fields.getAs<DictionaryAttr>("peer")) // coll.sum_row
    fields = inner;
  if (failed(configFromDictionary(fields, config, [&] { return op->emitOpError(); })))
    return failure();
  const kernels::PeerArea form = config.area();
  const auto axis = static_cast<int>(op->getAttrOfType<coll::AxisAttr>("axis").getValue());
  auto [at, isNew] = byAxis.try_emplace(axis, Area{end, form.bytes()});
  if (isNew)
    end += (form.bytes() + 4095) / 4096 * 4096;
  if (at->second.bytes != form.bytes())
    return op->emitOpError("needs an area of ")
           << form.bytes() << " bytes, another collective of its axis one of " << at->second.bytes;
  return at->second;
}
