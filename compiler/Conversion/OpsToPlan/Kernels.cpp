// One plan.kernel for all launches with the same name, Config, Tile, argument types and region.
#include "codegen/Regions.h"
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "compiler/Sizes.h"

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

// tensor<? x columns x element>, in elements that are stored. Rows are the bucket's, and buckets share kernels.
static Type rowsOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  int64_t columns = tensor.getRank() > 1 ? llvm::product_of(tensor.getShape().drop_front()) : 1;
  if (!element.isF32() && !element.isBF16() && !element.isInteger(32)) {
    columns = std::max<int64_t>(columns * elementBits(element) / 8, 1);
    element = IntegerType::get(type.getContext(), 8, IntegerType::Unsigned);
  }
  if (columns != 1)
    shape.push_back(columns);
  return RankedTensorType::get(shape, element);
}

FlatSymbolRefAttr Kernels::of(Operation *op, DictionaryAttr kernel, ArrayRef<Type> args) {
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
  ArrayAttr types = Builder(context).getTypeArrayAttr(llvm::map_to_vector(args, rowsOf));
  auto key = ArrayAttr::get(context, {spec, types});
  const SmallVector<Region *, 1> regions = regionsOf(op);

  for (planir::KernelOp candidate : candidates[key])
    if (llvm::equal(regions, candidate.getBodies(), [](Region *mine, Region &other) {
          return OperationEquivalence::isRegionEquivalentTo(mine, &other, OperationEquivalence::IgnoreLocations);
        }))
      return known[op] = FlatSymbolRefAttr::get(candidate);

  OpBuilder builder(context);
  builder.setInsertionPointAfter(last);
  std::string symbol = (name.getValue() + "." + Twine(count[name.getValue()]++)).str();
  auto created = planir::KernelOp::create(builder, op->getLoc(), symbol, nameForPeople(op, name.getValue()), "",
                                          builder.getArrayAttr({}), "", spec, types, /*starts_early=*/false, regions.size());
  for (auto [region, body] : llvm::zip(regions, created.getBodies())) {
    IRMapping mapping;
    region->cloneInto(&body, mapping); // functions are shared by layers, so the region is copied
  }
  last = created;
  candidates[key].push_back(created);
  return known[op] = FlatSymbolRefAttr::get(created);
}
