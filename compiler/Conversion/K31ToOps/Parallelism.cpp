// What a rank holds and what it needs from others. Plans of one rank need nothing; shares of weights are to be cut here.
#include "compiler/Conversion/K31ToOps/OpsBuilder.h"

using namespace mlir;

namespace k31 {

FailureOr<Mesh> meshOfOneRank(ModuleOp module) {
  FailureOr<Mesh> mesh = readMesh(module);
  if (failed(mesh))
    return failure();
  for (auto [name, size] : mesh->axes())
    if (*size != 1)
      return module.emitError("k31.mesh: ") << name << " is " << *size << ", this build converts plans of one rank";
  return mesh;
}

// Folds to its operand when the axis has one rank.
Value OpsBuilder::allReduce(Value x, coll::Axis axis) {
  int64_t size = axis == coll::Axis::ep ? state.mesh.ep : state.mesh.tp;
  return b.createOrFold<coll::AllReduceOp>(x.getLoc(), x, axis, static_cast<uint64_t>(size));
}

} // namespace k31
