#include "compiler/Mesh.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace k31 {

FailureOr<Mesh> readMesh(ModuleOp module) {
  auto attr = module->getAttrOfType<DictionaryAttr>("k31.mesh");
  if (!attr)
    return module.emitError("has no k31.mesh; run assign-parallelism first");
  Mesh mesh;
  for (auto [name, size] : mesh.axes()) {
    auto value = attr.getAs<IntegerAttr>(name);
    if (!value || value.getInt() < 1)
      return module.emitError("k31.mesh: ") << name << " is " << (value ? std::to_string(value.getInt()) : std::string("missing"))
                                            << ", expected at least one rank";
    *size = value.getInt();
  }
  return mesh;
}

void writeMesh(ModuleOp module, Mesh mesh) {
  Builder b(module.getContext());
  SmallVector<NamedAttribute> attrs;
  for (auto [name, size] : mesh.axes())
    attrs.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(*size)));
  module->setAttr("k31.mesh", b.getDictionaryAttr(attrs));
}

} // namespace k31
