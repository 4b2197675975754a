// Folding may not move constants out of fused regions: a region holds all that it needs.
#pragma once
#include "mlir/Interfaces/FoldInterfaces.h"

namespace k31 {

struct KeepConstants : mlir::DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(mlir::Region *) const final { return true; }
};

} // namespace k31
