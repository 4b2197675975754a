#include "compiler/Conversion/K31ToOps/Rows.h"
#include "compiler/Options.h"
#include "dialects/K31/K31.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace mlir;

namespace k31 {

// ---- what a rank does with the rows that it has

Value OpsBuilder::full(Value old) { return bucket.isSharded() ? allGather(get(old), coll::Axis::tp) : get(old); }
Value OpsBuilder::sumRows(Value x) {
  return bucket.isSharded() ? reduceScatter(x, coll::Axis::tp) : allReduce(x, coll::Axis::tp);
}
Value OpsBuilder::ownRows(Value x) {
  if (!bucket.isSharded())
    return x;
  return coll::OwnRowsOp::create(b, x.getLoc(), x, all.live, tensorRank, static_cast<uint64_t>(state.mesh.tp)).getResult();
}

void OpsBuilder::makeOwn() {
  if (!bucket.isSharded())
    return;
  auto type = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, b.getI32Type()); };
  auto parts = attn::BatchRowsOp::create(b, at("rows"), type({4}), type({bucket.segments, 6}), type({bucket.streamRows}),
                                         all.batch, tensorRank);
  Value ownLive = columns(parts.getCounts(), 0, 1);
  Value ownBatch = attn::BatchOfOp::create(b, at("rows"), bucket.ownBatchType(b.getContext()), parts.getCounts(),
                                           parts.getSegments(), parts.getRowSegment(), all.batch);
  own = {ownLive, ownBatch};
}

// ---- the choice

// Products of whole tiles of 64 rows: what a group of fewer heads costs on tensor cores.
static constexpr int64_t kHeadTile = 64;

RowChooser::RowChooser(ModuleOp module, func::FuncOp text, Type activation, ModuleState &state)
    : module(module), state(state), speeds(state.options.target->speeds()),
      activationBytes(activation.getIntOrFloatBitWidth() / 8) {
  auto count = [&](Operation &op) {
    if (auto mix = dyn_cast<model::AttnResOp>(op)) {
      streamRows += static_cast<int64_t>(mix.getSources().size());
    } else if (auto norm = dyn_cast<model::RMSNormOp>(op)) {
      streamRows += norm.getX().getDefiningOp<model::AttnResOp>() ? 1 : 2; // a mix and its norm are one pass
      hidden = OpsBuilder::columnsOf(norm.getX());
    } else if (isa<model::AddOp>(op)) {
      streamRows += 2; // one pass with the mix that reads the sum
    } else if (isa<model::KDAOp, model::MLAOp, model::MLPOp, model::LatentMoEOp>(op)) {
      ++sums;
    }
    if (auto attention = dyn_cast<model::MLAOp>(op)) {
      ++mla.layers;
      mla.heads = attention.getHeads(), mla.latent = attention.getKvRank(), mla.shared = attention.getRope();
      mla.queryBytes = 0;
      for (StringRef name : {"q_b_proj", "q_proj", "kv_b_proj", "g_proj", "o_proj"})
        if (auto weight = attention.getWeights().getAs<FlatSymbolRefAttr>(name))
          mla.queryBytes += state.rows(weight) * state.columns(weight) * 2;
    } else if (auto indexer = dyn_cast<model::DSAOp>(op)) {
      mla.topK = indexer.getTopK(), mla.indexHeads = indexer.getHeads(), mla.indexDim = indexer.getHeadDim();
    }
  };
  for (Operation &op : text.getBody().front())
    if (auto call = dyn_cast<func::CallOp>(op))
      for (Operation &inner : module.lookupSymbol<func::FuncOp>(call.getCallee()).getBody().front())
        count(inner);
    else
      count(op);
}

LogicalResult RowChooser::readWishes() {
  FailureOr<StringRef> stream = optionWord(module, "sequence_parallel", {"auto", "on", "off"}),
                       attention = optionWord(module, "mla", {"auto", "heads", "rows", "limit"});
  if (failed(stream) || failed(attention))
    return failure();
  streamWish = stream->str(), mlaWish = attention->str();
  return success();
}

double RowChooser::exchange(Exchange what, int64_t bytes) const {
  const Mesh &mesh = state.mesh;
  return librarySeconds(state.options.target->isCuda(), what, uint64_t(bytes), mesh.tp, insideHost(mesh, coll::Axis::tp));
}

SmallVector<Note> RowChooser::choose(Bucket &bucket) {
  bucket.streamRows = bucket.rows;
  if (state.mesh.tp == 1 || bucket.isDecode())
    return {};
  SmallVector<Note> notes = {chooseStream(bucket)};
  if (mla.layers)
    notes.push_back(chooseAttention(bucket));
  return notes;
}

Note RowChooser::chooseStream(Bucket &bucket) {
  const int64_t tp = state.mesh.tp, bytes = streamRows * bucket.rows * hidden * activationBytes;
  const int64_t sum = bucket.rows * hidden * activationBytes;
  const double once = double(sums) * exchange(Exchange::allReduce, sum);
  const double twice = double(sums) * (exchange(Exchange::reduceScatter, sum) + exchange(Exchange::allGather, sum));
  const double whole = double(bytes) / speeds.memory, parts = double(bytes / tp) / speeds.memory;
  Note note{"rows", "", "", {{"whole on every rank", nanoseconds(whole + once)}, {"shared over tp", nanoseconds(parts + twice)}}};
  if (streamWish == "on" || (streamWish == "auto" && parts + twice < whole + once))
    bucket.streamRows = bucket.rows / tp;
  note.choice = note.candidates[bucket.isSharded()].choice;
  note.reason =
      llvm::formatv("mixes, norms and additions of {0} rows move {1} bytes in {2:f1} us, of {3} rows {4} in {5:f1} us; {6} "
                    "sums of {7} bytes take {8:f1} us as one all_reduce each, {9:f1} us as reduce_scatter and all_gather",
                    bucket.rows, bytes, whole * 1e6, bucket.rows / tp, bytes / tp, parts * 1e6, sums, sum, once * 1e6,
                    twice * 1e6)
          .str();
  if (streamWish != "auto")
    note.reason += "; --sequence-parallel " + streamWish + " decides";
  return note;
}

// One MLA layer. By heads every rank gathers the selected rows of all queries, for its heads; by rows those of its queries, for
// all heads, with whole weights. The indexer's rows are shared out either way.
Note RowChooser::chooseAttention(Bucket &bucket) {
  const int64_t tp = state.mesh.tp, T = bucket.rows, width = mla.latent + mla.shared, context = state.options.maxContext;
  const int64_t keys = std::max<int64_t>(1, std::min(mla.topK ? mla.topK : context, context / 2)); // of a query, on average
  const int64_t gathered = T * keys * width * activationBytes;
  const int64_t heads = (mla.heads + tp - 1) / tp;
  auto padded = [](int64_t n) { return (n + kHeadTile - 1) / kHeadTile * kHeadTile; };
  auto products = [&](int64_t rows, int64_t count) { return 2.0 * double(rows * keys) * double(count * (width + mla.latent)); };
  auto attend = [&](int64_t rows, int64_t count) {
    const double bytes = mla.topK ? double(rows) / double(T) * double(gathered) / speeds.cache : 0;
    return std::max(bytes, products(rows, speeds.tiles ? padded(count) : count) / speeds.products);
  };
  const int64_t stream = T * hidden * activationBytes;
  const double byHeads = attend(T, heads) + double(mla.queryBytes / tp) / speeds.memory + exchange(Exchange::allGather, stream) +
                         exchange(Exchange::reduceScatter, stream);
  const double byRows = attend(T / tp, mla.heads) + double(mla.queryBytes) / speeds.memory +
                        exchange(Exchange::allGather, T * width * activationBytes);
  Note note{"mla", "", "", {{"by heads", nanoseconds(byHeads)}, {"by query rows", nanoseconds(byRows)}}};
  bucket.byQueryRows = bucket.isSharded() && (mlaWish == "rows" || (mlaWish == "auto" && byRows < byHeads));
  note.choice = note.candidates[bucket.byQueryRows].choice;
  note.reason =
      llvm::formatv(
          "a layer of {0} rows and {1} keys a row: by heads {2} of {3} heads gather {4} bytes, read {5} of weights and "
          "exchange rows of {6} twice; by rows {7} rows gather {8} bytes, read {9} of weights and exchange rows of {10} "
          "once. By rows the weights of {11} layers are held whole beside the shares of the other entries: {12} bytes",
          T, keys, heads, mla.heads, gathered, mla.queryBytes / tp, hidden, T / tp, gathered / tp, mla.queryBytes, width,
          mla.layers, mla.layers * mla.queryBytes)
          .str();
  if (!bucket.isSharded())
    note.reason += "; by rows needs rows that are shared over tp";
  else if (mlaWish == "limit")
    note.reason += "; with them the plan exceeds --memory-limit";
  else if (mlaWish != "auto")
    note.reason += "; --mla " + mlaWish + " decides";
  return note;
}

} // namespace k31
