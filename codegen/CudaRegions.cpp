#include "codegen/CudaRegions.h"
#include "codegen/CudaKernels.h"
#include "codegen/Regions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace k31 {
namespace {

// bf16 values travel as fp32 numbers that bf16 holds.
StringRef typeName(Type type) {
  if (type.isF32() || type.isBF16())
    return "float";
  if (type.isInteger(1))
    return "bool";
  return type.isInteger(32) ? "int" : "";
}

// A C++ expression with {0}, {1}, {2} for the operands; empty for an op that has no such form. Functions are CUDA's own, or those
// of kernels/common/math.cuh, which every kernel with a region includes.
StringRef floatForm(StringRef op) {
  return llvm::StringSwitch<StringRef>(op)
      .Case("arith.addf", "{0} + {1}")
      .Case("arith.subf", "{0} - {1}")
      .Case("arith.mulf", "{0} * {1}")
      .Case("arith.divf", "quotient({0}, {1})")
      .Case("arith.remf", "fmodf({0}, {1})")
      .Case("arith.negf", "-{0}")
      .Case("arith.maxnumf", "fmaxf({0}, {1})")
      .Case("arith.minnumf", "fminf({0}, {1})")
      // A NaN stays, and +0 is above -0.
      .Case("arith.maximumf", "{0} != {0} ? {0} : {1} != {1} ? {1} : fmaxf({0}, {1})")
      .Case("arith.minimumf", "{0} != {0} ? {0} : {1} != {1} ? {1} : fminf({0}, {1})")
      .Case("math.absf", "fabsf({0})")
      .Case("math.ceil", "ceilf({0})")
      .Case("math.copysign", "copysignf({0}, {1})")
      .Case("math.cos", "cosf({0})")
      .Case("math.erf", "erff({0})")
      .Case("math.exp", "expf({0})")
      .Case("math.exp2", "exp2f({0})")
      .Case("math.expm1", "expm1f({0})")
      .Case("math.floor", "floorf({0})")
      .Case("math.fma", "fmaf({0}, {1}, {2})")
      .Case("math.isfinite", "fabsf({0}) < __uint_as_float(0x7f800000u)")
      .Case("math.isinf", "fabsf({0}) == __uint_as_float(0x7f800000u)")
      .Case("math.isnan", "{0} != {0}")
      .Case("math.log", "logf({0})")
      .Case("math.log1p", "log1pf({0})")
      .Case("math.log2", "log2f({0})")
      .Case("math.powf", "powf({0}, {1})")
      .Case("math.roundeven", "rintf({0})")
      .Case("math.rsqrt", "inverse_root({0})")
      .Case("math.sin", "sinf({0})")
      .Case("math.sqrt", "sqrtf({0})")
      .Case("math.tanh", "tanhf({0})")
      .Case("math.trunc", "truncf({0})")
      .Default("");
}

StringRef otherForm(StringRef op) {
  return llvm::StringSwitch<StringRef>(op)
      .Case("arith.addi", "int(unsigned({0}) + unsigned({1}))")
      .Case("arith.subi", "int(unsigned({0}) - unsigned({1}))")
      .Case("arith.muli", "int(unsigned({0}) * unsigned({1}))")
      .Case("arith.andi", "{0} & {1}")
      .Case("arith.ori", "{0} | {1}")
      .Case("arith.xori", "{0} ^ {1}")
      .Case("arith.select", "{0} ? {1} : {2}")
      .Case("arith.extf", "{0}")
      .Case("arith.sitofp", "float({0})")
      .Case("arith.uitofp", "float(unsigned({0}))")
      .Case("arith.fptosi", "int({0})")
      .Default("");
}

StringRef comparison(arith::CmpFPredicate p) {
  switch (p) {
  case arith::CmpFPredicate::AlwaysFalse:
    return "false";
  case arith::CmpFPredicate::OEQ:
    return "{0} == {1}";
  case arith::CmpFPredicate::OGT:
    return "{0} > {1}";
  case arith::CmpFPredicate::OGE:
    return "{0} >= {1}";
  case arith::CmpFPredicate::OLT:
    return "{0} < {1}";
  case arith::CmpFPredicate::OLE:
    return "{0} <= {1}";
  case arith::CmpFPredicate::ONE:
    return "{0} < {1} || {0} > {1}";
  case arith::CmpFPredicate::ORD:
    return "{0} == {0} && {1} == {1}";
  case arith::CmpFPredicate::UEQ:
    return "!({0} < {1} || {0} > {1})";
  case arith::CmpFPredicate::UGT:
    return "!({0} <= {1})";
  case arith::CmpFPredicate::UGE:
    return "!({0} < {1})";
  case arith::CmpFPredicate::ULT:
    return "!({0} >= {1})";
  case arith::CmpFPredicate::ULE:
    return "!({0} > {1})";
  case arith::CmpFPredicate::UNE:
    return "{0} != {1}";
  case arith::CmpFPredicate::UNO:
    return "{0} != {0} || {1} != {1}";
  case arith::CmpFPredicate::AlwaysTrue:
    return "true";
  }
  return "";
}

StringRef comparison(arith::CmpIPredicate p) {
  switch (p) {
  case arith::CmpIPredicate::eq:
    return "{0} == {1}";
  case arith::CmpIPredicate::ne:
    return "{0} != {1}";
  case arith::CmpIPredicate::slt:
    return "{0} < {1}";
  case arith::CmpIPredicate::sle:
    return "{0} <= {1}";
  case arith::CmpIPredicate::sgt:
    return "{0} > {1}";
  case arith::CmpIPredicate::sge:
    return "{0} >= {1}";
  default:
    return ""; // unsigned comparisons: no region of the models has one
  }
}

// A bf16 result of fp32 arithmetic is rounded; so are bf16 operations.
bool rounds(Operation *op) {
  return op->getResult(0).getType().isBF16() && !isa<arith::SelectOp, arith::NegFOp, math::AbsFOp, arith::ConstantOp>(op);
}

StringRef formOf(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return comparison(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return comparison(compare.getPredicate());
  if (isa<arith::TruncFOp>(op))
    return op->getResult(0).getType().isBF16() ? "{0}" : "";
  if (isa<arith::BitcastOp>(op))
    return op->getResult(0).getType().isF32()         ? "__int_as_float({0})"
           : op->getResult(0).getType().isInteger(32) ? "__float_as_int({0})"
                                                      : "";
  StringRef name = op->getName().getStringRef();
  StringRef form = floatForm(name);
  return form.empty() ? otherForm(name) : form;
}

// Prints the statements of one function: each value once, in the order in which it is needed.
class FunctionPrinter {
public:
  explicit FunctionPrinter(const RegionFunction &function) : function(function) {
    for (auto [i, value] : llvm::enumerate(function.inputs))
      names[value] = "in[" + std::to_string(i) + "]";
  }

  FailureOr<std::string> print() {
    std::string stores;
    for (auto [i, value] : llvm::enumerate(function.outputs)) {
      FailureOr<std::string> name = get(value);
      if (failed(name))
        return failure();
      stores += llvm::formatv("    out[{0}] = {1};\n", i, *name);
    }
    return text + stores;
  }

private:
  FailureOr<std::string> get(Value value) {
    if (auto known = names.find(value); known != names.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    FailureOr<std::string> expression = constant(op);
    if (succeeded(expression))
      return names[value] = *expression;
    expression = compute(op);
    StringRef type = typeName(value.getType());
    if (failed(expression) || type.empty()) {
      if (succeeded(expression))
        op->emitOpError("cannot be in a fused region on sm_90a: ") << value.getType() << " is none of f32, bf16, i32 and i1";
      return failure();
    }
    std::string name = "v" + std::to_string(count++);
    text += llvm::formatv("    const {0} {1} = {2};\n", type, name, *expression);
    return names[value] = name;
  }

  FailureOr<std::string> constant(Operation *op) {
    Attribute value;
    if (!matchPattern(op, m_Constant(&value)))
      return failure();
    if (auto number = dyn_cast<FloatAttr>(value)) // f32 and bf16 alike are fp32 numbers
      return cudaLiteral(static_cast<float>(number.getValueAsDouble()));
    if (auto number = dyn_cast<IntegerAttr>(value))
      return number.getType().isInteger(1) ? std::string(number.getValue().isZero() ? "false" : "true")
                                           : "(" + std::to_string(number.getValue().getSExtValue()) + ")";
    return failure();
  }

  FailureOr<std::string> compute(Operation *op) {
    StringRef form = op->getNumResults() == 1 ? formOf(op) : StringRef();
    if (form.empty()) {
      op->emitOpError("has no form in CUDA C++; write it by arith and math ops that codegen/CudaRegions.cpp lists");
      return failure();
    }
    SmallVector<std::string> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<std::string> name = get(operand);
      if (failed(name))
        return failure();
      operands.push_back(*name);
    }
    std::string expression;
    for (size_t i = 0; i < form.size(); ++i)
      if (form[i] == '{') {
        expression += operands[form[i + 1] - '0'];
        i += 2;
      } else {
        expression += form[i];
      }
    return rounds(op) ? "round_bf16(" + expression + ")" : expression;
  }

  const RegionFunction &function;
  DenseMap<Value, std::string> names;
  std::string text;
  int count = 0;
};

// To the nearest bf16 number, ties to even; NaN stays NaN.
constexpr StringRef kRoundBf16 = R"(  static __forceinline__ float round_bf16(float x) {
    const unsigned bits = __float_as_uint(x);
    return x != x ? x : __uint_as_float((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
  }
)";

} // namespace

FailureOr<std::string> cudaRegions(ArrayRef<Region *> regions) {
  if (regions.empty())
    return std::string();
  std::string functions;
  int next = 0;
  for (Region *region : regions) {
    FailureOr<RegionPhases> phases = analyzeRegion(*region);
    if (failed(phases))
      return failure();
    for (const RegionFunction &function : splitRegion(*region, *phases)) {
      FailureOr<std::string> body = FunctionPrinter(function).print();
      if (failed(body))
        return failure();
      functions +=
          llvm::formatv("  static __forceinline__ void phase{0}(const float *in, float *out) {{\n{1}  }\n", next++, *body).str();
    }
  }
  bool rounding = StringRef(functions).contains("round_bf16(");
  return "struct Region {\n" + (rounding ? kRoundBf16.str() : "") + functions + "};\n";
}

} // namespace k31
