// moe ops as kernels.
#include "dialects/Moe/Moe.h"
#include "codegen/KernelModels.h"
#include "codegen/Regions.h"
#include "codegen/kernels/moe/combine.h"
#include "codegen/kernels/moe/grouped_linear.h"
#include "codegen/kernels/moe/permute.h"
#include "codegen/kernels/moe/route.h"

using namespace llvm;
using namespace mlir;

namespace k31 {

static FailureOr<KernelSpec> select(moe::RouteOp op, OpReader &read) {
  kernels::route::Config c;
  read.requireF32(op.getLogits(), "the logits");
  int64_t rows = dim(op.getLogits(), 0);
  c.rows = read.rows(rows);
  c.experts = read.number(dim(op.getLogits(), 1), "experts");
  c.top_k = read.number(op.getTopK(), "top_k");
  c.renormalize = op.getRenormalize();
  c.scale = op.getScale().convertToFloat();
  c.ld_logits = read.number(leadingDim(op.getLogits()), "a row of logits");
  c.bias_type = read.floatType(op.getBias(), "the bias");
  uint64_t products = uint64_t(rows) * c.experts * (16 + c.top_k); // the sigmoid, then a pass a choice
  return read.spec("moe.route", c, splitWork({products, bytesOf(op.getLogits()), uint64_t(rows)}));
}

static FailureOr<KernelSpec> select(moe::PermuteOp op, OpReader &read) {
  kernels::permute::Config c;
  c.rows = read.rows(dim(op.getX(), 0)), c.cols = read.number(dim(op.getX(), 1), "columns");
  c.top_k = read.number(dim(op.getIds(), 1), "top_k");
  c.first = read.number(op.getFirst(), "the first expert"), c.experts = read.number(op.getExperts(), "experts");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
  c.type = read.floatType(op.getX(), "x");
  c.ranked = op.getCoordinate() != nullptr;
  readGroups(read, op.getLive(), dim(op.getX(), 0), c);
  return read.spec("moe.permute", c, Split{1, "the rows of an expert follow from a sum over all tokens", {}});
}

// By k31.mesh of the module; 1 without.
static int32_t ranksOfExperts(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<DictionaryAttr>("k31.mesh") : DictionaryAttr();
  auto ep = mesh ? mesh.getAs<IntegerAttr>("ep") : IntegerAttr();
  return ep ? static_cast<int32_t>(ep.getInt()) : 1;
}

static FailureOr<KernelSpec> select(moe::GroupedLinearOp op, OpReader &read) {
  kernels::grouped_linear::Config c;
  int64_t rows = dim(op.getX(), 0), k = dim(op.getX(), 1), experts = dim(op.getW(), 0), n = dim(op.getW(), 1);
  c.rows = read.tileRows(rows), c.experts = read.number(experts, "experts");
  c.ranks = ranksOfExperts(op);
  c.n = read.number(n, "rows of an expert"), c.k = read.number(k, "a row");
  c.mxfp4 = isa<Float4E2M1FNType>(tensorOf(op.getW()).getElementType());
  c.pair = op.getPair();
  c.epilogue = !op.getEpilogue().empty();
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
  c.ld_out = read.number(dim(op.getResult(), 1), "a row of the result");
  c.x_type = read.floatType(op.getX(), "x");
  if (!c.mxfp4)
    c.w_type = read.floatType(op.getW(), "the weight");
  c.out_type = read.floatType(op.getResult(), "the result");
  if (c.mxfp4 != (op.getScale() != nullptr))
    read.refuse() << "needs scales with f4E2M1FN weights, and no scales with others";
  if (c.mxfp4 && k % 32 != 0)
    read.refuse() << "has rows of " << k << " values; MXFP4 scales cover 32 each";
  if (c.epilogue && failed(analyzeRegion(op.getEpilogue())))
    return failure();
  // Few rows touch few experts: the weights of at most one expert a row are read.
  uint64_t touched = std::min(rows, experts),
           weights = (bytesOf(op.getW()) + (c.mxfp4 ? bytesOf(op.getScale()) : 0)) / experts * touched;
  uint64_t bytes = weights + bytesOf(op.getX()) + bytesOf(op.getResult());
  return read.spec("moe.grouped_linear", c, splitWork({uint64_t(rows) * n * k, bytes, touched * ((c.ld_out + 15) / 16)}));
}

static FailureOr<KernelSpec> select(moe::CombineOp op, OpReader &read) {
  kernels::combine::Config c;
  c.weighted = op.getWeights() != nullptr;
  if (c.weighted)
    read.requireF32(op.getWeights(), "the weights");
  int64_t rows = dim(op.getSlot(), 0);
  c.rows = read.rows(rows);
  c.cols = read.number(dim(op.getX(), 1), "columns");
  c.top_k = read.number(dim(op.getSlot(), 1), "top_k");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x"),
  c.ld_out = read.number(dim(op.getResult(), 1), "a row of the result");
  c.x_type = read.floatType(op.getX(), "x"), c.out_type = read.floatType(op.getResult(), "the result");
  readGroups(read, op.getLive(), rows, c);
  uint64_t products = uint64_t(rows) * c.top_k * c.cols;
  return read.spec("moe.combine", c, splitWork({products, bytesOf(op.getX()) + bytesOf(op.getResult()), uint64_t(rows)}));
}

void registerMoeKernelModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, moe::MoeDialect *) {
    attachModels<moe::RouteOp, moe::PermuteOp, moe::GroupedLinearOp, moe::CombineOp>(context);
  });
}

} // namespace k31
