#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::planir;

// (%a read, %b write): value, access and type of each argument.
static ParseResult parseLaunchArgs(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &args,
                                   SmallVectorImpl<Type> &types, DenseI32ArrayAttr &access) {
  SmallVector<int32_t> accesses;
  auto parseOne = [&]() -> ParseResult {
    StringRef word;
    SMLoc loc;
    if (parser.parseOperand(args.emplace_back()) || parser.getCurrentLocation(&loc) || parser.parseKeyword(&word))
      return failure();
    std::optional<Access> value = symbolizeAccess(word);
    if (!value)
      return parser.emitError(loc, "expected read, write or update, found '") << word << "'";
    accesses.push_back(static_cast<int32_t>(*value));
    return parser.parseColonType(types.emplace_back());
  };
  OpAsmParser::UnresolvedOperand first;
  OptionalParseResult any = parser.parseOptionalOperand(first);
  if (!any.has_value()) {
    access = parser.getBuilder().getDenseI32ArrayAttr({});
    return success();
  }
  if (failed(*any))
    return failure();
  args.push_back(first);
  StringRef word;
  SMLoc loc;
  if (parser.getCurrentLocation(&loc) || parser.parseKeyword(&word))
    return failure();
  std::optional<Access> value = symbolizeAccess(word);
  if (!value)
    return parser.emitError(loc, "expected read, write or update, found '") << word << "'";
  accesses.push_back(static_cast<int32_t>(*value));
  if (parser.parseColonType(types.emplace_back()))
    return failure();
  while (succeeded(parser.parseOptionalComma()))
    if (parseOne())
      return failure();
  access = parser.getBuilder().getDenseI32ArrayAttr(accesses);
  return success();
}

static void printLaunchArgs(OpAsmPrinter &printer, Operation *, OperandRange args, TypeRange types, DenseI32ArrayAttr access) {
  for (auto [i, arg] : llvm::enumerate(args)) {
    if (i)
      printer << ", ";
    printer << arg << ' ' << stringifyAccess(static_cast<Access>(access[i])) << " : " << types[i];
  }
}

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

mlir::LogicalResult LaunchOp::verify() { return mlir::success(); }
mlir::LogicalResult CopyOp::verify() { return mlir::success(); }

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"
