#include "dialects/Plan/Plan.h"
#include "dialects/Support/KeepConstants.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::planir;

// (%a read : tensor<8xf32>, %b write : tensor<8xf32>): value, access and type of each argument.
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
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  access = parser.getBuilder().getDenseI32ArrayAttr(accesses);
  return success();
}

static void printLaunchArgs(OpAsmPrinter &printer, Operation *, OperandRange args, TypeRange types, DenseI32ArrayAttr access) {
  printer << '(';
  llvm::interleaveComma(llvm::enumerate(args), printer, [&](auto pair) {
    size_t i = pair.index();
    std::optional<Access> value = i < static_cast<size_t>(access.size()) ? symbolizeAccess(access[i]) : std::nullopt;
    printer << pair.value() << ' ' << (value ? stringifyAccess(*value) : "invalid") << " : " << types[i];
  });
  printer << ')';
}

// The same behind `with`, or nothing.
static ParseResult parseMoreArgs(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &args,
                                 SmallVectorImpl<Type> &types, DenseI32ArrayAttr &access) {
  if (succeeded(parser.parseOptionalKeyword("with")))
    return parseLaunchArgs(parser, args, types, access);
  access = parser.getBuilder().getDenseI32ArrayAttr({});
  return success();
}

static void printMoreArgs(OpAsmPrinter &printer, Operation *op, OperandRange args, TypeRange types, DenseI32ArrayAttr access) {
  if (args.empty())
    return;
  printer << "with ";
  printLaunchArgs(printer, op, args, types, access);
}

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"

void PlanDialect::initialize() {
  addInterfaces<k31::KeepConstants>();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"
