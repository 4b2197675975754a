// The ranks of a plan, as assign-parallelism puts them on the module: k31.mesh.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <array>
#include <cstdint>
#include <utility>

namespace k31 {

// Ranks along each axis. World size is tp x dp x pp; experts are split over ep ranks of a stage; node ranks share a host.
struct Mesh {
  int64_t tp = 1, dp = 1, ep = 1, pp = 1, node = 1;

  // Name and size of each axis, in the order in which plans and messages list them.
  std::array<std::pair<llvm::StringRef, int64_t *>, 5> axes() {
    return {{{"tp", &tp}, {"dp", &dp}, {"ep", &ep}, {"pp", &pp}, {"node", &node}}};
  }
  int64_t ranks() const { return tp * dp * pp; }
  int64_t edp() const { return ep > tp ? ep / tp : 1; } // dp groups that an expert group spans
  int64_t hosts() const {
    return node > 1 && ep > node && ep % node == 0 ? ep / node : 1;
  } // of an expert group, `node` ranks each
};

// k31.mesh of the module; a diagnostic when it is missing or lacks an axis.
llvm::FailureOr<Mesh> readMesh(mlir::ModuleOp module);
void writeMesh(mlir::ModuleOp module, Mesh mesh);

} // namespace k31
