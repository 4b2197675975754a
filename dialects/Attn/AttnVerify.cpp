// Shapes of attention ops against their caches and batch.
#include "dialects/Attn/Attn.h"
#include "dialects/Support/Verify.h"

using namespace mlir;
using namespace k31;
using namespace k31::attn;

LogicalResult CacheType::verify(function_ref<InFlightDiagnostic()> emitError, CacheKind kind, ArrayRef<int64_t> shape,
                                Type element, int64_t codes, CacheSharding) {
  bool paged = kind == CacheKind::latent || kind == CacheKind::index;
  size_t rank = kind == CacheKind::kda ? 3 : 2;
  StringRef dims = paged ? "[256, width]" : kind == CacheKind::kda ? "[heads, key, value]" : "[taps - 1, channels]";
  if (shape.size() != rank || llvm::any_of(shape, [](int64_t size) { return size < 1; }) || (paged && shape[0] != kBlockTokens))
    return emitError() << "a unit of a " << stringifyCacheKind(kind) << " cache is " << dims << ", found " << shapeText(shape);
  const bool coded = kind == CacheKind::latent ? isa<Float8E4M3FNType>(element) : paged && element.isInteger(8);
  if (!coded && (kind == CacheKind::kda ? !element.isF32() : !(element.isF32() || element.isBF16())))
    return emitError() << "a " << stringifyCacheKind(kind) << " cache holds "
                       << (kind == CacheKind::kda      ? "f32"
                           : kind == CacheKind::latent ? "bf16, f32 or f8E4M3FN"
                           : paged                     ? "bf16, f32 or i8"
                                                       : "bf16 or f32")
                       << ", found " << element;
  if (!coded || kind == CacheKind::index)
    return codes == 0 ? success() : emitError() << "only a latent cache of f8E4M3FN names its codes, found " << codes;
  if (codes < 4 || codes % 4 || codes > shape[1] || (shape[1] - codes) % 2)
    return emitError() << "a latent row of " << shape[1]
                       << " values has a multiple of 4 of them as codes and an even rest, found " << codes << " codes";
  return success();
}

LogicalResult BatchType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t segments, int64_t blocks) {
  if (segments < 1 || rows < 1 || blocks < 1) // a rank's part of a batch may have fewer rows than segments
    return emitError() << "a batch has 1 or more rows, segments and blocks, found " << rows << " rows, " << segments
                       << " segments, " << blocks << " blocks";
  return success();
}

LogicalResult PoolOp::verify() {
  ArrayRef<int64_t> members = getMembers();
  if (members.empty() || members.front() < 0 ||
      std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end())
    return emitOpError() << "expected ascending layer numbers as members, found " << shapeText(members);
  return success();
}

// counts [4], segments [S, 6] and row_segment [rows], i32, of a batch.
static LogicalResult verifyParts(Operation *op, Value counts, Value segments, Value rowSegment, int64_t segmentCount,
                                 int64_t rows) {
  const std::pair<StringRef, Value> parts[] = {{"counts", counts}, {"segments", segments}, {"row_segment", rowSegment}};
  const SmallVector<int64_t> shapes[] = {{4}, {segmentCount, 6}, {rows}};
  for (auto [part, shape] : llvm::zip(parts, shapes)) {
    auto type = dyn_cast<RankedTensorType>(part.second.getType());
    if (!type || type.getShape() != ArrayRef(shape) || !type.getElementType().isInteger(32))
      return op->emitOpError() << part.first << " is " << part.second.getType() << ", expected i32 of shape " << shapeText(shape);
  }
  return success();
}

LogicalResult BatchRowsOp::verify() {
  BatchType batch = getBatch().getType();
  auto coordinate = cast<RankedTensorType>(getCoordinate().getType());
  auto rowSegment = cast<RankedTensorType>(getRowSegment().getType());
  if (coordinate.getShape() != ArrayRef<int64_t>(1) || !coordinate.getElementType().isInteger(32))
    return emitOpError() << "coordinate is " << coordinate << ", expected i32 of shape [1]";
  const int64_t rows = rowSegment.getRank() == 1 ? rowSegment.getDimSize(0) : 0;
  if (rows < 1 || batch.getRows() % rows)
    return emitOpError() << "row_segment is " << rowSegment << ", expected a share of the " << batch.getRows() << " rows";
  return verifyParts(*this, getCounts(), getSegments(), getRowSegment(), batch.getSegments(), rows);
}

LogicalResult BatchOfOp::verify() {
  BatchType result = getResult().getType(), table = getTable().getType();
  if (result.getSegments() != table.getSegments() || result.getBlocks() != table.getBlocks())
    return emitOpError() << "result is " << result << ", expected the segments and blocks of " << table;
  return verifyParts(*this, getCounts(), getSegments(), getRowSegment(), result.getSegments(), result.getRows());
}

static LogicalResult isKind(Operation *op, StringRef name, Value cache, ArrayRef<CacheKind> kinds) {
  CacheKind found = cast<CacheType>(cache.getType()).getKind();
  if (llvm::is_contained(kinds, found))
    return success();
  auto error = op->emitOpError() << name << " is a cache of kind " << stringifyCacheKind(found) << ", expected ";
  for (auto [i, kind] : llvm::enumerate(kinds))
    error << (i ? " or " : "") << stringifyCacheKind(kind);
  return error;
}

static LogicalResult isUnit(Operation *op, StringRef name, Value cache, ArrayRef<int64_t> expected) {
  ArrayRef<int64_t> found = cast<CacheType>(cache.getType()).getShape();
  if (found == expected)
    return success();
  return op->emitOpError() << name << " has units of shape " << shapeText(found) << ", expected " << shapeText(expected);
}

// A tensor of as many rows as the batch, of the given columns (negative: any).
static FailureOr<RankedTensorType> rowsOf(Operation *op, StringRef name, Value value, Value batch, StringRef dims,
                                          int64_t cols = -1) {
  auto type = shaped(op, name, value, dims);
  if (failed(type) ||
      failed(sameSize(op, "rows", name, type->getDimSize(0), "the batch", cast<BatchType>(batch.getType()).getRows())))
    return failure();
  if (cols >= 0 && type->getDimSize(1) != cols)
    return op->emitOpError() << name << " has " << type->getDimSize(1) << " columns, expected " << cols;
  return type;
}

// The columns of one head.
static FailureOr<int64_t> perHead(Operation *op, StringRef name, int64_t cols, int64_t heads) {
  if (heads < 1)
    return op->emitOpError() << "expected one head or more, found " << heads;
  if (cols % heads)
    return op->emitOpError() << heads << " heads do not divide the " << cols << " columns of " << name;
  return cols / heads;
}

LogicalResult AppendOp::verify() {
  auto x = rowsOf(*this, "x", getX(), getBatch(), "[T, C]");
  if (failed(x) || failed(isReal(*this, "x", *x)) ||
      failed(isKind(*this, "cache", getCache(), {CacheKind::latent, CacheKind::index})))
    return failure();
  int64_t begin = getBegin(), end = begin + x->getDimSize(1), width = getCache().getType().getShape()[1];
  if (begin < 0 || end > width)
    return emitOpError() << "columns [" << begin << ", " << end << ") do not lie in the " << width << " columns of a cache row";
  int64_t codes = getCache().getType().getRowCodes(); // all codes of a row, whose scales go by all of them, or none
  if (codes && begin < codes && (begin != 0 || end != codes))
    return emitOpError() << "columns [" << begin << ", " << end << ") are a part of the " << codes
                         << " codes of a cache row, which are written together";
  return success();
}

LogicalResult ShortConvOp::verify() {
  auto x = rowsOf(*this, "x", getX(), getBatch(), "[T, C]");
  if (failed(x))
    return failure();
  int64_t channels = x->getDimSize(1);
  auto result = rowsOf(*this, "result", getResult(), getBatch(), "[T, C]", channels);
  auto w = shaped(*this, "w", getW(), "[C, taps]");
  if (failed(result) || failed(w) || failed(isReal(*this, "x", *x)) || failed(isReal(*this, "w", *w)) ||
      failed(isReal(*this, "result", *result)) || failed(sameSize(*this, "channels", "x", channels, "w", w->getDimSize(0))) ||
      failed(isKind(*this, "window", getCache(), {CacheKind::conv})) ||
      failed(isUnit(*this, "window", getCache(), {w->getDimSize(1) - 1, channels})))
    return failure();
  return getEpilogue().empty() ? success() : isFusedRegion(*this, getEpilogue(), 1, "the sum", 1, false);
}

LogicalResult KDAOp::verify() {
  Type f32 = Float32Type::get(getContext());
  auto q = rowsOf(*this, "q", getQ(), getBatch(), "[T, heads * D]");
  if (failed(q))
    return failure();
  int64_t heads = getHeads(), cols = q->getDimSize(1);
  auto dim = perHead(*this, "q", cols, heads);
  if (failed(dim))
    return failure();
  auto k = rowsOf(*this, "k", getK(), getBatch(), "[T, heads * D]", cols);
  auto v = rowsOf(*this, "v", getV(), getBatch(), "[T, heads * D]", cols);
  auto g = rowsOf(*this, "decay", getG(), getBatch(), "[T, heads * D]", cols);
  auto beta = rowsOf(*this, "beta", getBeta(), getBatch(), "[T, heads]", heads);
  auto result = rowsOf(*this, "result", getResult(), getBatch(), "[T, heads * D]", cols);
  if (failed(k) || failed(v) || failed(g) || failed(beta) || failed(result) || failed(isReal(*this, "q", *q)) ||
      failed(isElement(*this, "k", *k, q->getElementType())) || failed(isElement(*this, "v", *v, q->getElementType())) ||
      failed(isElement(*this, "decay", *g, f32)) || failed(isElement(*this, "beta", *beta, f32)) ||
      failed(isReal(*this, "result", *result)) || failed(isKind(*this, "state", getState(), {CacheKind::kda})) ||
      failed(isUnit(*this, "state", getState(), {heads, *dim, *dim})))
    return failure();
  if (static_cast<int64_t>(getChunk()) < 1)
    return emitOpError() << "expected a chunk of one token or more, found " << static_cast<int64_t>(getChunk());
  return success();
}

// The heads are those of the state; all else follows from it.
LogicalResult KDADecodeOp::verify() {
  if (failed(isKind(*this, "state", getState(), {CacheKind::kda})))
    return failure();
  const int64_t heads = getHeads(), dim = getHeadDim(), cols = heads * dim;
  if (failed(isUnit(*this, "state", getState(), {heads, dim, dim})))
    return failure();
  Type f32 = Float32Type::get(getContext());
  auto x = rowsOf(*this, "x", getX(), getBatch(), "[T, 3 heads * D]", 3 * cols);
  auto g = rowsOf(*this, "decay", getG(), getBatch(), "[T, heads * D]", cols);
  auto beta = rowsOf(*this, "beta", getBeta(), getBatch(), "[T, heads]", heads);
  auto w = shaped(*this, "w", getW(), "[C, taps]");
  if (failed(x) || failed(g) || failed(beta) || failed(w) || failed(isReal(*this, "x", *x)) || failed(isReal(*this, "w", *w)) ||
      failed(isElement(*this, "decay", *g, f32)) || failed(isElement(*this, "beta", *beta, f32)) ||
      failed(sameSize(*this, "channels", "x", 3 * cols, "w", w->getDimSize(0))) ||
      failed(isKind(*this, "window", getWindow(), {CacheKind::conv})) ||
      failed(isUnit(*this, "window", getWindow(), {w->getDimSize(1) - 1, 3 * cols})))
    return failure();
  for (auto [name, type] : {std::pair<StringRef, Type>{"q, k and v", getQkv()}, {"the result of the recurrence", getOut()}})
    if (!type.isF32() && !type.isBF16())
      return emitOpError() << name << " would be rounded to " << type << ", expected f32 or bf16";
  for (Value value : getResults()) {
    auto result = rowsOf(*this, "result", value, getBatch(), "[T, heads * D]", cols);
    if (failed(result) || failed(isReal(*this, "result", *result)))
      return failure();
  }
  if (!getActivation().empty() && failed(isFusedRegion(*this, getActivation(), 1, "the sum", 1, false)))
    return failure();
  return isRowOn(*this, "the recurrence's result", static_cast<int64_t>(getAt()), getInputs(), x->getDimSize(0), cols, heads,
                 getBody(), getResults().size());
}

LogicalResult IndexSelectOp::verify() {
  auto q = rowsOf(*this, "q", getQ(), getBatch(), "[T, heads * head_dim]");
  if (failed(q))
    return failure();
  int64_t heads = getHeads();
  auto dim = perHead(*this, "q", q->getDimSize(1), heads);
  if (failed(dim))
    return failure();
  auto w = rowsOf(*this, "weights", getW(), getBatch(), "[T, heads]", heads);
  if (failed(w) || failed(isReal(*this, "q", *q)) || failed(isReal(*this, "weights", *w)) ||
      failed(isKind(*this, "keys", getKeys(), {CacheKind::index})))
    return failure();
  return isUnit(*this, "keys", getKeys(), {kBlockTokens, *dim});
}

LogicalResult AttendOp::verify() {
  auto latent = rowsOf(*this, "q_latent", getQLatent(), getBatch(), "[T, heads * L]");
  auto shared = rowsOf(*this, "q_shared", getQShared(), getBatch(), "[T, heads * S']");
  if (failed(latent) || failed(shared))
    return failure();
  int64_t heads = getHeads(), begin = getSharedBegin();
  auto l = perHead(*this, "q_latent", latent->getDimSize(1), heads);
  if (failed(l))
    return failure();
  auto s = perHead(*this, "q_shared", shared->getDimSize(1), heads);
  if (failed(s) || failed(isReal(*this, "q_latent", *latent)) || failed(isReal(*this, "q_shared", *shared)) ||
      failed(isKind(*this, "cache", getCache(), {CacheKind::latent})))
    return failure();
  int64_t width = getCache().getType().getShape()[1], count = width - *l;
  if (count < 0)
    return emitOpError() << "q_latent has " << *l << " values a head, but a cache row has " << width;
  if (begin < 0 || begin + count > *s)
    return emitOpError() << "values [" << begin << ", " << begin + count << ") of a head do not lie in the " << *s
                         << " values of a head of q_shared (a cache row holds " << *l << " + " << count << ")";
  auto result = rowsOf(*this, "result", getResult(), getBatch(), "[T, heads * L]", latent->getDimSize(1));
  if (failed(result) || failed(isReal(*this, "result", *result)))
    return failure();
  if (getIndices()) {
    auto indices = rowsOf(*this, "selected", getIndices(), getBatch(), "[T, top_k]");
    if (failed(indices) || failed(isElement(*this, "selected", *indices, IntegerType::get(getContext(), 32))))
      return failure();
  }
  if (!getLse())
    return success();
  auto lse = rowsOf(*this, "log-sum-exp", getLse(), getBatch(), "[T, heads]", heads);
  return failure(failed(lse) || failed(isElement(*this, "log-sum-exp", *lse, Float32Type::get(getContext()))));
}
