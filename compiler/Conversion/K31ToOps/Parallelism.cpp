// What a rank holds and what it needs from others. Plans of one rank need nothing; shares of weights are to be cut here.
#include "compiler/Conversion/K31ToOps/OpsBuilder.h"

using namespace mlir;

namespace k31 {

FailureOr<Mesh> readMesh(ModuleOp module) {
  auto attr = module->getAttrOfType<DictionaryAttr>("k31.mesh");
  if (!attr)
    return module.emitError("has no k31.mesh; run assign-parallelism first");
  Mesh mesh;
  std::pair<StringRef, int64_t *> fields[] = {{"tp", &mesh.tp}, {"dp", &mesh.dp}, {"ep", &mesh.ep}, {"pp", &mesh.pp}};
  for (auto [name, field] : fields) {
    auto value = attr.getAs<IntegerAttr>(name);
    if (!value || value.getInt() != 1)
      return module.emitError("k31.mesh: ") << name << " is " << (value ? std::to_string(value.getInt()) : std::string("missing"))
                                            << ", this build converts plans of one rank";
    *field = value.getInt();
  }
  return mesh;
}

// Folds to its operand when the axis has one rank.
Value OpsBuilder::allReduce(Value x, coll::Axis axis) {
  int64_t size = axis == coll::Axis::ep ? state.mesh.ep : state.mesh.tp;
  return b.createOrFold<coll::AllReduceOp>(x.getLoc(), x, axis, static_cast<uint64_t>(size));
}

} // namespace k31
