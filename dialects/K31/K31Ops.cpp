#include "dialects/K31/K31.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::model;

#include "dialects/K31/K31Dialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/K31/K31Attrs.cpp.inc"

void K31Dialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/K31/K31Attrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/K31/K31Ops.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/K31/K31Ops.cpp.inc"
