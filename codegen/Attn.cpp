// attn ops as kernels.
#include "dialects/Attn/Attn.h"
#include "codegen/KernelModels.h"
#include "codegen/Regions.h"
#include "codegen/RowConfig.h"
#include "codegen/kernels/attn/append.h"
#include "codegen/kernels/attn/attend.h"
#include "codegen/kernels/attn/batch_rows.h"
#include "codegen/kernels/attn/index_select.h"
#include "codegen/kernels/attn/kda.h"
#include "codegen/kernels/attn/kda_decode.h"
#include "codegen/kernels/attn/short_conv.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace k31 {

static_assert(kBlockTokens == kernels::kBlockTokens);

static attn::CacheType cacheOf(Value value) { return cast<attn::CacheType>(value.getType()); }
static int64_t blocksOf(Value batch) { return cast<attn::BatchType>(batch.getType()).getBlocks(); }
static uint64_t rowBytes(attn::CacheType cache) { return uint64_t(cache.getUnitBytes()) / kBlockTokens; }
static int64_t segmentsOf(Value batch) { return cast<attn::BatchType>(batch.getType()).getSegments(); }

static FailureOr<KernelSpec> select(attn::BatchRowsOp op, OpReader &read) {
  kernels::batch_rows::Config c;
  c.share = read.number(dim(op.getRowSegment(), 0), "rows of a rank");
  return read.spec("attn.batch_rows", c, splitWork({0, 2 * (bytesOf(op.getSegments()) + bytesOf(op.getRowSegment())), 1}));
}

static FailureOr<KernelSpec> select(attn::AppendOp op, OpReader &read) {
  kernels::append::Config c;
  attn::CacheType cache = cacheOf(op.getCache());
  int64_t rows = dim(op.getX(), 0);
  c.rows = read.rows(rows);
  c.cols = read.number(dim(op.getX(), 1), "columns");
  c.begin = read.number(op.getBegin(), "the first column"), c.width = read.number(cache.getShape().back(), "a cache row");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x"), c.blocks = read.number(blocksOf(op.getBatch()), "blocks");
  c.x_type = read.floatType(op.getX(), "x"), c.cache_type = read.cacheType(cache.getElement(), "the cache");
  c.codes = read.number(cache.getRowCodes(), "the codes of a row");
  return read.spec("attn.append", c, splitCopy(op.getX(), rows));
}

static FailureOr<KernelSpec> select(attn::ShortConvOp op, OpReader &read) {
  kernels::short_conv::Config c;
  int64_t rows = dim(op.getX(), 0);
  c.rows = read.rows(rows);
  c.channels = read.number(dim(op.getX(), 1), "channels");
  c.taps = read.number(dim(op.getW(), 1), "taps");
  c.ld_x = read.number(leadingDim(op.getX()), "a row of x"),
  c.ld_out = read.number(dim(op.getResult(), 1), "a row of the result");
  c.epilogue = !op.getEpilogue().empty();
  c.x_type = read.floatType(op.getX(), "x"), c.w_type = read.floatType(op.getW(), "the taps");
  c.window_type = read.floatType(cacheOf(op.getCache()).getElement(), "the window");
  c.out_type = read.floatType(op.getResult(), "the result");
  if (c.epilogue && failed(analyzeRegion(op.getEpilogue())))
    return failure();
  uint64_t products = uint64_t(rows) * c.channels * (c.taps + (c.epilogue ? op.getEpilogue().front().getOperations().size() : 0));
  uint64_t windows = segmentsOf(op.getBatch()) * uint64_t(c.taps - 1) * c.channels * 2 * 2;
  uint64_t bytes = bytesOf(op.getX()) + bytesOf(op.getW()) + bytesOf(op.getResult()) + windows;
  return read.spec("attn.short_conv", c, splitWork({products, bytes, uint64_t(c.channels + 63) / 64}));
}

static FailureOr<KernelSpec> select(attn::KDAOp op, OpReader &read) {
  kernels::kda::Config c;
  int64_t rows = dim(op.getQ(), 0);
  c.rows = read.rows(rows);
  c.heads = read.number(op.getHeads(), "heads");
  c.head_dim = read.number(dim(op.getQ(), 1) / op.getHeads(), "a head");
  c.ld_qkv = read.number(leadingDim(op.getQ()), "a row of q"), c.ld_g = read.number(leadingDim(op.getG()), "a row of the decay");
  c.ld_beta = read.number(leadingDim(op.getBeta()), "a row of beta");
  c.ld_out = read.number(dim(op.getResult(), 1), "a row of the result"), c.chunk = read.number(op.getChunk(), "chunk");
  c.qkv_type = read.floatType(op.getQ(), "q"), c.out_type = read.floatType(op.getResult(), "the result");
  for (Value other : {op.getK(), op.getV()})
    if (leadingDim(other) != c.ld_qkv || tensorOf(other).getElementType() != tensorOf(op.getQ()).getElementType())
      return read.refuse() << "takes q, k and v with the same element type and row distance; found " << op.getQ().getType()
                           << " with " << c.ld_qkv << " and " << other.getType() << " with " << leadingDim(other);
  read.requireF32(op.getG(), "the decay"), read.requireF32(op.getBeta(), "beta");
  if (!cacheOf(op.getState()).getElement().isF32())
    read.refuse() << "keeps its state in f32; found " << cacheOf(op.getState()).getElement();
  uint64_t matrix = uint64_t(c.heads) * c.head_dim * c.head_dim;
  uint64_t segments = segmentsOf(op.getBatch());
  uint64_t bytes = bytesOf(op.getQ()) * 3 + bytesOf(op.getG()) + bytesOf(op.getResult()) + segments * matrix * 8;
  return read.spec("attn.kda", c, splitWork({uint64_t(rows) * matrix * 4, bytes, segments * c.heads}));
}

static FailureOr<KernelSpec> select(attn::KDADecodeOp op, OpReader &read) {
  kernels::kda_decode::Config c;
  const int64_t rows = dim(op.getX(), 0), cols = static_cast<int64_t>(op.getHeads()) * op.getHeadDim();
  c.conv.channels = read.number(3 * cols, "channels"), c.conv.taps = read.number(dim(op.getW(), 1), "taps");
  c.conv.ld_x = read.number(leadingDim(op.getX()), "a row of x"), c.conv.epilogue = !op.getActivation().empty();
  c.conv.x_type = read.floatType(op.getX(), "x"), c.conv.w_type = read.floatType(op.getW(), "the taps");
  c.conv.window_type = read.floatType(cacheOf(op.getWindow()).getElement(), "the window");
  c.conv.out_type = c.kda.qkv_type = read.floatType(op.getQkv(), "q, k and v");
  c.kda.heads = read.number(op.getHeads(), "heads"), c.kda.head_dim = read.number(op.getHeadDim(), "a head"), c.kda.chunk = 1;
  c.kda.ld_g = read.number(leadingDim(op.getG()), "a row of the decay");
  c.kda.ld_beta = read.number(leadingDim(op.getBeta()), "a row of beta");
  c.kda.out_type = read.floatType(op.getOut(), "the recurrence's result");
  c.rows = read.rows(rows), c.at = read.number(op.getAt(), "the recurrence's result");
  if (c.conv.epilogue && failed(analyzeRegion(op.getActivation())))
    return failure();
  FailureOr<kernels::row::Config> row = rowConfig(read, op.getInputs(), op.getResults(), op.getHeads(), op.getBody());
  if (failed(row) || failed(insertInput(read, *row, c.at, c.kda.out_type)))
    return failure();
  c.row = *row;
  const uint64_t segments = segmentsOf(op.getBatch()), matrix = uint64_t(cols) * c.kda.head_dim;
  const uint64_t windows = segments * uint64_t(c.conv.taps - 1) * 3 * cols * 2 * 2;
  const uint64_t bytes = bytesOf(op.getX()) + bytesOf(op.getW()) + bytesOf(op.getG()) + bytesOf(op.getInputs()) +
                         bytesOf(op.getResults()) + windows + segments * matrix * 8;
  return read.spec("attn.kda_decode", c, splitWork({uint64_t(rows) * matrix * 4, bytes, segments * c.kda.heads}));
}

static FailureOr<KernelSpec> select(attn::IndexSelectOp op, OpReader &read) {
  kernels::index_select::Config c;
  int64_t blocks = blocksOf(op.getBatch()), context = blocks * kBlockTokens;
  int64_t rows = dim(op.getQ(), 0);
  c.rows = read.rows(rows);
  c.heads = read.number(op.getHeads(), "heads");
  c.head_dim = read.number(dim(op.getQ(), 1) / op.getHeads(), "a head"), c.top_k = read.number(op.getTopK(), "top_k");
  c.max_context = read.number(context, "the context");
  c.ld_q = read.number(leadingDim(op.getQ()), "a row of q"), c.ld_w = read.number(leadingDim(op.getW()), "a row of weights");
  c.blocks = read.number(blocks, "blocks");
  c.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  c.head_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.heads)));
  c.q_type = read.floatType(op.getQ(), "q"), c.w_type = read.floatType(op.getW(), "the weights");
  c.cache_type = read.cacheType(cacheOf(op.getKeys()).getElement(), "the keys");
  c.runs = c.rows >= 64 && c.rows >= 4 * segmentsOf(op.getBatch());
  uint64_t scratch = uint64_t(context) * 8; // a key and a candidate for each position
  if (scratch > kWorkspaceLimit)
    return read.refuse() << "needs " << scratch << " bytes of scratch for one row of " << context << " positions; the limit is "
                         << kWorkspaceLimit << ": lower max_context";
  // Half of the context stands for the mean length.
  uint64_t products = uint64_t(rows) * (context / 2) * c.heads * c.head_dim;
  uint64_t bytes = uint64_t(segmentsOf(op.getBatch())) * (context / 2) * rowBytes(cacheOf(op.getKeys())) + bytesOf(op.getQ());
  Split split = splitWork({products, bytes, uint64_t(rows)}, scratch);
  return read.spec("attn.index_select", c, split, split.tasks * scratch);
}

static FailureOr<KernelSpec> select(attn::AttendOp op, OpReader &read) {
  kernels::attend::Config c;
  attn::CacheType cache = cacheOf(op.getCache());
  int64_t heads = op.getHeads(), width = cache.getShape().back(), blocks = blocksOf(op.getBatch());
  int64_t rows = dim(op.getQLatent(), 0);
  c.rows = read.rows(rows);
  c.heads = read.number(heads, "heads");
  c.latent = read.number(dim(op.getQLatent(), 1) / heads, "the latent part");
  c.shared = read.number(width - c.latent, "the shared part");
  c.ld_q = read.number(leadingDim(op.getQLatent()), "a row of q_latent");
  c.ld_shared = read.number(leadingDim(op.getQShared()), "a row of q_shared");
  c.head_shared = read.number(dim(op.getQShared(), 1) / heads, "a head of q_shared");
  c.shared_begin = read.number(op.getSharedBegin(), "the first value of the shared part");
  c.top_k = op.getIndices() ? read.number(dim(op.getIndices(), 1), "top_k") : 0;
  c.ld_out = read.number(dim(op.getResult(), 1), "a row of the result"), c.blocks = read.number(blocks, "blocks");
  c.lse = op.getLse() != nullptr;
  c.scale = op.getScale().convertToFloat();
  c.q_type = read.floatType(op.getQLatent(), "q_latent"), c.shared_type = read.floatType(op.getQShared(), "q_shared");
  c.cache_type = read.cacheType(cache.getElement(), "the cache"), c.out_type = read.floatType(op.getResult(), "the result");
  // Half of the context stands for the mean length.
  uint64_t context = uint64_t(blocks) * kBlockTokens / 2, keys = c.top_k ? std::min<uint64_t>(c.top_k, context) : context;
  uint64_t products = uint64_t(rows) * heads * keys * (2 * c.latent + c.shared);
  if (cache.hasCodes() && cache.getRowCodes() != c.latent)
    return read.refuse() << "takes the " << c.latent << " values of q_latent as the codes of a cache row; found "
                         << cache.getRowCodes() << " codes";
  uint64_t bytes = uint64_t(rows) * keys * rowBytes(cache) + bytesOf(op.getQLatent()) + bytesOf(op.getResult());
  return read.spec("attn.attend", c, splitWork({products, bytes, uint64_t(rows) * (heads + 3) / 4}));
}

void registerAttnKernelModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, attn::AttnDialect *) {
    attachModels<attn::BatchRowsOp, attn::AppendOp, attn::ShortConvOp, attn::KDAOp, attn::KDADecodeOp, attn::IndexSelectOp,
                 attn::AttendOp>(context);
  });
}

} // namespace k31
