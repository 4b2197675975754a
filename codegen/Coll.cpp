// coll ops that are kernels of one rank. What moves bytes between ranks is a plan.collective and needs none.
#include "dialects/Coll/Coll.h"
#include "codegen/KernelModels.h"
#include "codegen/Operands.h"
#include "codegen/kernels/coll/join.h"
#include "codegen/kernels/coll/part.h"
#include "codegen/kernels/coll/rows.h"

using namespace llvm;
using namespace mlir;

namespace k31 {
namespace {

struct JoinModel : KernelOp::ExternalModel<JoinModel, coll::JoinOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::JoinOp>(o);
    OpReader read(o, target);
    kernels::join::Config c;
    c.capacity = read.number(dim(op.getResult(), 0), "rows");
    c.part = read.number(dim(op.getX(), 1), "columns of a rank");
    c.cols = read.number(dim(op.getResult(), 1), "columns");
    c.size = read.number(op.getSize(), "ranks");
    c.type = read.floatType(op.getX(), "x");
    return read.spec("coll.join", c, splitWork({0, 2 * bytesOf(op.getResult()), uint64_t(c.capacity)}));
  }
};

struct PartModel : KernelOp::ExternalModel<PartModel, coll::PartOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::PartOp>(o);
    OpReader read(o, target);
    kernels::part::Config c;
    const int64_t rows = dim(op.getX(), 0);
    c.rows = read.rows(rows);
    c.cols = read.number(dim(op.getX(), 1), "columns");
    c.part = read.number(dim(op.getResult(), 1), "columns of a rank");
    c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
    c.type = read.floatType(op.getX(), "x");
    return read.spec("coll.part", c, splitWork({0, 2 * bytesOf(op.getResult()), uint64_t(rows)}));
  }
};

struct RowsModel : KernelOp::ExternalModel<RowsModel, coll::RowsOp> {
  FailureOr<KernelSpec> selectKernel(Operation *o, const Target &target) const {
    auto op = cast<coll::RowsOp>(o);
    OpReader read(o, target);
    kernels::rows::Config c;
    c.share = read.number(dim(op.getResult(), 0), "rows of a rank");
    c.cols = read.number(dim(op.getX(), 1), "columns");
    c.ld_x = read.number(leadingDim(op.getX()), "a row of x");
    c.type = read.floatType(op.getX(), "x");
    return read.spec("coll.rows", c, splitWork({0, 2 * bytesOf(op.getResult()), uint64_t(c.share)}));
  }
};

} // namespace

void registerCollKernelModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, coll::CollDialect *) {
    coll::JoinOp::attachInterface<JoinModel>(*context);
    coll::PartOp::attachInterface<PartModel>(*context);
    coll::RowsOp::attachInterface<RowsModel>(*context);
  });
}

} // namespace k31
