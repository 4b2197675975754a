// The axes of the mesh and how weights are shared out over them. See CollMesh.td.
#pragma once
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Coll/CollEnums.h.inc"
