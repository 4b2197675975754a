// nn ops as kernels.
#include "dialects/NN/NN.h"
#include "codegen/KernelModels.h"
#include "codegen/Regions.h"
#include "codegen/RowConfig.h"
#include "codegen/kernels/nn/embed.h"
#include "codegen/kernels/nn/gather.h"
#include "codegen/kernels/nn/head_linear.h"
#include "codegen/kernels/nn/linear.h"
#include "codegen/kernels/nn/row.h"
#include "codegen/kernels/nn/sample.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace k31 {

static FailureOr<KernelSpec> select(nn::EmbedOp op, OpReader &read) {
  kernels::embed::Config c;
  int64_t rows = dim(op.getTokens(), 0);
  c.rows = read.rows(rows);
  c.vocab = read.number(dim(op.getTable(), 0), "the vocabulary");
  c.hidden = read.number(dim(op.getTable(), 1), "a row");
  c.table_type = read.floatType(op.getTable(), "the table");
  c.out_type = read.floatType(op.getResult(), "the result");
  return read.spec("nn.embed", c, splitCopy(op.getResult(), rows));
}

static FailureOr<KernelSpec> select(nn::GatherOp op, OpReader &read) {
  kernels::gather::Config c;
  int64_t rows = dim(op.getIndex(), 0);
  c.rows = read.rows(rows);
  c.cols = read.number(dim(op.getSource(), 1), "a row");
  c.ld_x = read.number(leadingDim(op.getSource()), "a row");
  c.ld_out = c.cols;
  c.type = read.floatType(op.getSource(), "the source");
  if (tensorOf(op.getSource()).getElementType() != tensorOf(op.getResult()).getElementType())
    read.refuse() << "copies rows: source and result must have the same element type";
  return read.spec("nn.gather", c, splitCopy(op.getResult(), rows));
}

static FailureOr<KernelSpec> select(nn::LinearOp op, OpReader &read) {
  kernels::linear::Config c;
  int64_t rows = dim(op.getX(), 0), n = dim(op.getW(), 0), k = dim(op.getX(), 1);
  int64_t cols = op.getPair() ? n / 2 : n;
  c.rows = read.tileRows(rows), c.n = read.number(n, "rows of the weight"), c.k = read.number(k, "a row");
  c.pair = op.getPair();
  c.epilogue = !op.getEpilogue().empty();
  c.x_type = read.floatType(op.getX(), "x"), c.w_type = read.floatType(op.getW(), "the weight");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
  if (tooMany(read, op.getExtras()))
    return failure();
  c.extras = static_cast<int32_t>(op.getExtras().size());
  for (auto [i, extra] : enumerate(op.getExtras()))
    readOperand(read, extra, rows, cols, 1, "an extra operand", c.extra_kind[i], c.extra_type[i], c.extra_ld[i], c.extra_cols[i]);
  readResults(read, op.getResults(), c.outputs, c.out_type, c.out_ld);
  if (c.epilogue && failed(analyzeRegion(op.getEpilogue())))
    return failure();
  uint64_t units = (cols + 15) / 16 * ((rows + 63) / 64);
  return read.spec("nn.linear", c,
                   splitWork({uint64_t(rows) * n * k, bytesOf(op->getOperands()) + bytesOf(op->getResults()), units}));
}

static FailureOr<KernelSpec> select(nn::HeadLinearOp op, OpReader &read) {
  kernels::head_linear::Config c;
  int64_t heads = op.getHeads(), cols = dim(op.getW(), 1);
  int64_t rows = dim(op.getX(), 0);
  c.rows = read.tileRows(rows);
  c.heads = read.number(heads, "heads");
  c.transposed = op.getTransposed();
  c.in = read.number(c.transposed ? op.getRowCount() : cols, "values of a head");
  c.out = read.number(c.transposed ? cols : op.getRowCount(), "values of a head");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
  c.head_x = read.number(dim(op.getX(), 1) / heads, "a head of x");
  c.head_w = read.number(dim(op.getW(), 0) / heads * cols, "a head of the weight");
  c.w_begin = read.number(op.getRowBegin() * cols, "the first row of a head");
  c.ld_out = read.number(dim(op.getResult(), 1), "a row of the result");
  c.x_type = read.floatType(op.getX(), "x"), c.w_type = read.floatType(op.getW(), "the weight");
  c.out_type = read.floatType(op.getResult(), "the result");
  uint64_t products = uint64_t(rows) * heads * c.in * c.out;
  uint64_t weight = bytesOf(op.getW()) * op.getRowCount() * heads / std::max<int64_t>(1, dim(op.getW(), 0));
  return read.spec("nn.head_linear", c,
                   splitWork({products, weight + bytesOf(op.getX()) + bytesOf(op.getResult()), uint64_t(rows) * heads}));
}

// nn.map and nn.row share a kernel; a map has no phases.
template <class Op> static FailureOr<KernelSpec> selectRow(Op op, OpReader &read, int64_t groups) {
  if (op.getResults().empty())
    return read.refuse() << "has no result";
  FailureOr<kernels::row::Config> c = rowConfig(read, op.getInputs(), op.getResults(), groups, op.getBody());
  if (failed(c))
    return failure();
  const int64_t rows = dim(op.getResults()[0], 0), cols = dim(op.getResults()[0], 1);
  c->rows = read.rows(rows);
  // Each op of the region counts as one product; elements are read once a phase from cache.
  uint64_t ops = op.getBody().front().getOperations().size();
  uint64_t units = rows * (c->phases ? c->groups : (cols + 255) / 256);
  uint64_t bytes = bytesOf(op->getOperands()) + bytesOf(op->getResults());
  return read.spec("nn.row", *c, splitWork({uint64_t(rows) * cols * ops, bytes, units}));
}
static FailureOr<KernelSpec> select(nn::MapOp op, OpReader &read) { return selectRow(op, read, 1); }
static FailureOr<KernelSpec> select(nn::RowOp op, OpReader &read) { return selectRow(op, read, op.getGroups()); }

static FailureOr<KernelSpec> select(nn::SampleOp op, OpReader &read) {
  kernels::sample::Config c;
  read.requireF32(op.getLogits(), "the logits");
  int64_t rows = dim(op.getLogits(), 0);
  c.rows = read.rows(rows);
  c.vocab = read.number(dim(op.getLogits(), 1), "the vocabulary");
  c.masked = op.getMask() != nullptr;
  c.ld_logits = read.number(leadingDim(op.getLogits()), "a row of logits");
  uint64_t scratch = uint64_t(c.vocab) * 8; // a pair of probability and id for each token
  Split split = splitWork({uint64_t(rows) * c.vocab * 16, bytesOf(op.getLogits()), uint64_t(rows)}, scratch);
  return read.spec("nn.sample", c, split, split.tasks * scratch);
}

void registerNNKernelModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachModels<nn::EmbedOp, nn::GatherOp, nn::LinearOp, nn::HeadLinearOp, nn::MapOp, nn::RowOp, nn::SampleOp>(context);
  });
}

void registerKernelModels(DialectRegistry &registry) {
  registerNNKernelModels(registry);
  registerAttnKernelModels(registry);
  registerMoeKernelModels(registry);
  registerCollKernelModels(registry);
}

} // namespace k31
