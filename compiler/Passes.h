// The passes of the compiler; see Passes.td for what each is for.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace k31 {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Passes.h.inc"
} // namespace k31
