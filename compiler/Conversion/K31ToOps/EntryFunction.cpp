#include "compiler/Conversion/K31ToOps/EntryFunction.h"
#include "dialects/K31/K31.h"

using namespace mlir;
using namespace k31;

FailureOr<TextForm> k31::formOf(func::FuncOp text) {
  TextForm form;
  auto count = [&](auto ops) { return std::distance(ops.begin(), ops.end()); };
  const auto embeds = count(text.getOps<model::EmbedOp>()), heads = count(text.getOps<model::HeadOp>());
  form.embed = embeds == 1, form.head = heads == 1;
  auto stream = [](Type type) {
    auto rows = dyn_cast<RankedTensorType>(type);
    return rows && rows.getRank() == 2 && isa<FloatType>(rows.getElementType());
  };
  const size_t own = form.embed ? 1 : std::max<size_t>(text.getNumArguments() - form.head, 1);
  const bool inputs =
      text.getNumArguments() == own + form.head && (form.embed || llvm::all_of(text.getArgumentTypes().take_front(own), stream));
  const bool outputs =
      text.getNumResults() > 0 && (!form.head || text.getNumResults() == 1) && llvm::all_of(text.getResultTypes(), stream);
  if (embeds > 1 || heads > 1 || !inputs || !outputs)
    return text.emitOpError(
        "expected (tokens, logit rows) -> logits with one k31.embed and one k31.head, or rows of the residual "
        "stream (hidden, bank...) in place of either end");
  return form;
}

Type k31::withRows(Type type, int64_t count) {
  auto rows = dyn_cast<RankedTensorType>(type);
  if (!rows)
    return type;
  SmallVector<int64_t> shape(rows.getShape());
  shape[0] = count;
  return rows.clone(shape);
}

namespace {
// An argument or result of an entry, by the name that it has in the plan's entry contract.
struct Port {
  Type type;
  StringRef name;
  std::optional<int64_t> offset = {}; // bytes, of a part of a tensor
};
} // namespace

// Sources of the residual bank, [T, H] each, follow each other in the entry's [K, T, H].
static void addStream(SmallVectorImpl<Port> &ports, ArrayRef<Type> types, const Bucket &bucket) {
  for (auto [i, old] : llvm::enumerate(types)) {
    auto type = cast<RankedTensorType>(withRows(old, bucket.rows));
    if (i == 0)
      ports.push_back({type, "hidden"});
    else
      ports.push_back({type, "bank", int64_t(i - 1) * type.getNumElements() * type.getElementTypeBitWidth() / 8});
  }
}

EntryFunction k31::createEntry(OpBuilder &b, func::FuncOp text, TextForm form, const Mesh &mesh, const Bucket &bucket,
                               int64_t stage, ArrayRef<Note> notes) {
  auto tensor = [](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
  const Type i32 = b.getI32Type(), u8 = b.getIntegerType(8, false), one = tensor({1}, i32);
  const bool first = stage == 0, last = stage + 1 == mesh.pp, head = form.head && last;
  const int64_t L = form.head ? bucket.logitRows : 0;
  SmallVector<Port> arguments, results;
  if (first && form.embed)
    arguments.push_back({tensor({bucket.rows}, i32), "tokens"});
  else if (first)
    addStream(arguments, text.getArgumentTypes().drop_back(form.head), bucket);
  const size_t own = arguments.size();
  arguments.push_back({one, "counts", 0});
  if (head)
    arguments.push_back({one, "counts", 8});
  arguments.push_back({bucket.batchType(b.getContext()), "batch"});
  if (head) {
    arguments.append({{tensor({L}, i32), "logit_rows"}, {tensor({L, 24}, u8), "sampling"}});
    const int64_t vocab = cast<RankedTensorType>(text.getResultTypes()[0]).getDimSize(1);
    results.append({{tensor({L, vocab}, b.getF32Type()), "logits"}, {tensor({L}, i32), "sampled"}});
  } else if (last) {
    addStream(results, text.getResultTypes(), bucket);
  }
  if (mesh.tp > 1)
    arguments.push_back({one, "coordinates", 0}); // {tp, dp, ep, pp, ...}, i32 each
  if (mesh.ep > 1)
    arguments.push_back({one, "coordinates", 8});
  auto typesOf = [](ArrayRef<Port> ports) { return llvm::map_to_vector(ports, [](const Port &p) { return p.type; }); };
  auto f = func::FuncOp::create(b, text.getLoc(), bucket.nameOf(stage), b.getFunctionType(typesOf(arguments), typesOf(results)));
  for (auto [i, port] : llvm::enumerate(arguments)) {
    f.setArgAttr(i, "k31.input", b.getStringAttr(port.name));
    if (port.offset)
      f.setArgAttr(i, "k31.offset", b.getI64IntegerAttr(*port.offset));
  }
  for (auto [i, port] : llvm::enumerate(results)) {
    f.setResultAttr(i, "k31.output", b.getStringAttr(port.name));
    if (port.offset)
      f.setResultAttr(i, "k31.offset", b.getI64IntegerAttr(*port.offset));
  }
  SmallVector<NamedAttribute> facts = {
      b.getNamedAttr("kind", b.getStringAttr(bucket.kind)), b.getNamedAttr("rows", b.getI64IntegerAttr(bucket.rows)),
      b.getNamedAttr("segments", b.getI64IntegerAttr(bucket.segments)), b.getNamedAttr("logit_rows", b.getI64IntegerAttr(L))};
  if (mesh.pp > 1)
    facts.push_back(b.getNamedAttr("stage", b.getI64IntegerAttr(stage)));
  f->setAttr("k31.entry", b.getDictionaryAttr(facts));
  for (const Note &why : notes)
    note(f, why);
  f.addEntryBlock();
  EntryFunction entry{f, f.getArgument(own), f.getArgument(own + 1 + head), {}, {}, {}, {}, {}};
  if (head)
    entry.liveLogits = f.getArgument(own + 1), entry.logitRows = f.getArgument(own + 3), entry.sampling = f.getArgument(own + 4);
  if (mesh.tp > 1)
    entry.tensorRank = f.getArgument(arguments.size() - 1 - (mesh.ep > 1));
  if (mesh.ep > 1)
    entry.expertRank = f.getArguments().back();
  return entry;
}
