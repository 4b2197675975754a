// One plan.kernel for all launches with the same name, Config, Tile and region.
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

// "nn.row add+rms_norm": the kernel and what was fused into it.
static std::string nameForPeople(Operation *op, StringRef kernel) {
  std::string name = kernel.str();
  if (auto fused = op->getAttrOfType<ArrayAttr>("fused"); fused && !fused.empty())
    name += " " + llvm::join(llvm::map_range(fused, [](Attribute part) { return cast<StringAttr>(part).getValue(); }), "+");
  return name;
}

FlatSymbolRefAttr Kernels::of(Operation *op, DictionaryAttr kernel) {
  if (FlatSymbolRefAttr symbol = known.lookup(op))
    return symbol;
  MLIRContext *context = op->getContext();
  auto name = kernel.getAs<StringAttr>("name");
  auto config = kernel.getAs<DictionaryAttr>("config");
  if (!config)
    config = DictionaryAttr::get(context);
  NamedAttrList fields;
  fields.set("name", name);
  fields.set("config", config);
  if (auto tile = kernel.getAs<DictionaryAttr>("tile"))
    fields.set("tile", tile);
  DictionaryAttr spec = fields.getDictionary(context);
  Region *region = op->getNumRegions() ? &op->getRegion(0) : nullptr;

  for (planir::KernelOp candidate : candidates[spec]) {
    bool same =
        region ? OperationEquivalence::isRegionEquivalentTo(region, &candidate.getBody(), OperationEquivalence::IgnoreLocations)
               : candidate.getBody().empty();
    if (same)
      return known[op] = FlatSymbolRefAttr::get(candidate);
  }

  OpBuilder builder(context);
  builder.setInsertionPointAfter(last);
  std::string symbol = (name.getValue() + "." + Twine(count[name.getValue()]++)).str();
  auto created = planir::KernelOp::create(builder, op->getLoc(), symbol, nameForPeople(op, name.getValue()), "",
                                          builder.getArrayAttr({}), "", spec);
  if (region) {
    IRMapping mapping;
    region->cloneInto(&created.getBody(), mapping); // bodies are shared by layers, so the region is copied
  }
  last = created;
  candidates[spec].push_back(created);
  return known[op] = FlatSymbolRefAttr::get(created);
}
