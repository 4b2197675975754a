#include "compiler/Conversion/K31ToOps/OpsBuilder.h"
#include "dialects/Support/Notes.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;

namespace k31 {

ModuleState::ModuleState(ModuleOp module, const Mesh &mesh, const EntryOptions &options)
    : mesh(mesh), options(options), module(module), symbols(module), declarations(module.getContext()) {
  declarations.setInsertionPointToStart(module.getBody());
  for (auto tensor : module.getOps<nn::TensorOp>())
    declarations.setInsertionPointAfter(tensor);
}

nn::StackOp ModuleState::stack(Location loc, StringRef name, ArrayRef<FlatSymbolRefAttr> parts, ArrayRef<int64_t> rows, Cut cut) {
  std::string symbol = "stack." + name.str();
  SmallVector<int64_t> used(rows);
  RankedTensorType type;
  nn::TensorOp first;
  for (FlatSymbolRefAttr part : parts) {
    auto tensor = symbols.lookup<nn::TensorOp>(part.getValue()); // there: level-1 ops verify their weights
    auto own = cast<RankedTensorType>(tensor.getType());
    int64_t experts = tensor.hasExperts();
    if (rows.empty())
      used.push_back(own.getDimSize(experts));
    if (!first)
      first = tensor, type = own;
    if (own.getElementType() != type.getElementType()) {
      emitError(loc) << first.getPattern() << " holds " << type.getElementType() << ", but " << tensor.getPattern() << " holds "
                     << own.getElementType() << "; tensors that are read together must be stored alike";
      failed = true;
    }
  }
  if (cut.of == coll::ShardOf::rows)
    for (int64_t &count : used)
      count = cut.share(count);
  if (auto known = symbols.lookup<nn::StackOp>(symbol)) {
    if (!llvm::equal(known.getParts().getAsRange<FlatSymbolRefAttr>(), parts) || known.getRows() != ArrayRef(used)) {
      InFlightDiagnostic error = emitError(loc) << "@" << symbol << " is read as rows [" << llvm::interleaved(used) << "] of "
                                                << declarations.getArrayAttr(SmallVector<Attribute>(parts.begin(), parts.end()));
      error << ", and elsewhere as rows [" << llvm::interleaved(known.getRows()) << "] of " << known.getParts()
            << "; ops that share a weight must read it alike";
      failed = true;
    }
    return known;
  }
  SmallVector<int64_t> shape(type.getShape());
  shape[first.hasExperts()] = llvm::sum_of(used);
  if (cut.of == coll::ShardOf::columns)
    shape.back() = cut.share(shape.back());
  else if (cut.of == coll::ShardOf::members)
    shape.front() = cut.share(shape.front());
  coll::AxisAttr axis;
  coll::ShardOfAttr of;
  if (cut.isCut()) {
    axis = coll::AxisAttr::get(module.getContext(), cut.axis);
    of = coll::ShardOfAttr::get(module.getContext(), cut.of);
  }
  SmallVector<Attribute> refs(parts.begin(), parts.end());
  auto stack = nn::StackOp::create(declarations, loc, symbol, declarations.getArrayAttr(refs), used, 0, axis, of,
                                   RankedTensorType::get(shape, type.getElementType()));
  symbols.insert(stack);
  return stack;
}

int64_t ModuleState::rows(FlatSymbolRefAttr part) {
  auto tensor = symbols.lookup<nn::TensorOp>(part.getValue());
  return cast<RankedTensorType>(tensor.getType()).getDimSize(tensor.hasExperts());
}

int64_t ModuleState::columns(FlatSymbolRefAttr part) {
  return cast<RankedTensorType>(symbols.lookup<nn::TensorOp>(part.getValue()).getType()).getShape().back();
}

bool ModuleState::hasMembers(nn::StackOp stack) {
  return !symbols.lookup<nn::TensorOp>(cast<FlatSymbolRefAttr>(stack.getParts()[0]).getValue()).getMembers().empty();
}

void ModuleState::refuse(const std::string &why) {
  if (!failed)
    module.emitError("--mesh ") << why;
  failed = true;
}

std::string ModuleState::pool(Location loc, attn::CacheType type, ArrayRef<int64_t> layers) {
  std::string name = "pool." + attn::stringifyCacheKind(type.getKind()).str();
  Pool &pool = pools.try_emplace(name, Pool{type, {}}).first->second;
  if (pool.type != type) {
    emitError(loc) << "@" << name << " holds " << pool.type << " and is asked for " << type
                   << "; all layers of a kind have caches of one shape";
    failed = true;
  }
  pool.members.insert(layers.begin(), layers.end());
  return name;
}

void ModuleState::declarePools() {
  for (auto &[name, pool] : pools)
    attn::PoolOp::create(declarations, NameLoc::get(declarations.getStringAttr(name)), name,
                         SmallVector<int64_t>(pool.members.begin(), pool.members.end()), pool.type);
}

// ---- OpsBuilder

RankedTensorType OpsBuilder::rowsOf(Value x, int64_t columns, Type element) {
  return RankedTensorType::get({cast<RankedTensorType>(x.getType()).getDimSize(0), columns}, element);
}

FlatSymbolRefAttr OpsBuilder::symbol(DictionaryAttr weights, StringRef name) { return weights.getAs<FlatSymbolRefAttr>(name); }

std::string OpsBuilder::label(FlatSymbolRefAttr part) {
  StringRef name = part.getValue();
  name.consume_back(".mla"); // tells equal names of two layer kinds apart
  name.consume_front("model.");
  return name.str();
}

static Value pick(OpsBuilder &o, Location loc, nn::StackOp stack) {
  return nn::WeightOp::create(o.b, loc, cast<RankedTensorType>(stack.getType()), FlatSymbolRefAttr::get(stack.getSymNameAttr()),
                              o.state.hasMembers(stack) ? o.layer : Value());
}

Value OpsBuilder::weight(FlatSymbolRefAttr part, ArrayRef<int64_t> rows, Cut cut) {
  Location loc = at(label(part));
  nn::StackOp stack = state.stack(loc, (part.getValue() + (cut.besides ? ".whole" : "")).str(), part, rows, cut);
  return pick(*this, loc, stack);
}

Value OpsBuilder::weight(StringRef name, Symbols parts, Cut cut) {
  Location loc = at(name);
  return pick(*this, loc, state.stack(loc, name, parts, {}, cut));
}

static Value product(OpsBuilder &o, Location loc, Value x, Value w, Type element) {
  int64_t n = cast<RankedTensorType>(w.getType()).getDimSize(0);
  return nn::LinearOp::create(o.b, loc, TypeRange{o.rowsOf(x, n, element)}, x, w, o.live, ValueRange{}, false, ArrayAttr())
      .getResult(0);
}

Value OpsBuilder::linear(Value x, FlatSymbolRefAttr w, Type element, Cut cut) {
  return product(*this, at(label(w)), x, weight(w, {}, cut), element);
}

Value OpsBuilder::linear(Value x, StringRef name, Symbols parts, Type element, Cut cut) {
  return product(*this, at(name), x, weight(name, parts, cut), element);
}

Value OpsBuilder::columns(Value x, int64_t begin, int64_t end) { return nn::ColumnsOp::create(b, x.getLoc(), x, begin, end); }

// The region's block takes one f32 an input and yields the formula's value.
static void fill(OpBuilder &b, Location loc, Region &region, size_t inputs, OpsBuilder::Formula formula) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> types(inputs, b.getF32Type());
  Block *block = b.createBlock(&region, {}, types, SmallVector<Location>(inputs, loc));
  Scalars scalars(b, loc);
  nn::YieldOp::create(b, loc, formula(scalars, block->getArguments()));
}

Value OpsBuilder::map(StringRef label, StringRef name, ValueRange inputs, Type element, Formula formula) {
  auto op = nn::MapOp::create(b, at(label), TypeRange{rowsOf(inputs[0], columnsOf(inputs[0]), element)}, live, inputs,
                              b.getStrArrayAttr({name}));
  fill(b, op.getLoc(), op.getBody(), inputs.size(), formula);
  return op.getResult(0);
}

Value OpsBuilder::row(StringRef label, StringRef name, ValueRange inputs, Type element, Formula formula, int64_t groups) {
  auto op = nn::RowOp::create(b, at(label), TypeRange{rowsOf(inputs[0], columnsOf(inputs[0]), element)}, live, inputs,
                              b.getStrArrayAttr({name}), static_cast<uint64_t>(groups));
  fill(b, op.getLoc(), op.getBody(), inputs.size(), formula);
  return op.getResult(0);
}

Value OpsBuilder::rmsNorm(Value x, FlatSymbolRefAttr gain, double eps) {
  int64_t n = columnsOf(x);
  return row(label(gain), "rms_norm", {x, weight(gain)}, activation,
             [&](Scalars &s, ValueRange in) { return s.mul(s.mul(in[0], s.inverseRms(in[0], n, eps)), in[1]); });
}

Value OpsBuilder::add(StringRef label, Value x, Value y) {
  return map(label, "add", {x, y}, activation, [](Scalars &s, ValueRange in) { return s.add(in[0], in[1]); });
}

Value OpsBuilder::cache(attn::CacheKind kind, ArrayRef<int64_t> unit, Type element) {
  return cache(attn::CacheType::get(b.getContext(), kind, unit, element, 0, attn::CacheSharding::replicated));
}

Value OpsBuilder::pagedCache(attn::CacheKind kind, int64_t width, int64_t codes) {
  const bool latent = kind == attn::CacheKind::latent;
  const bool coded = isa<Float8E4M3FNType>(state.cacheElement);
  if (coded && latent && (codes % 4 || (width - codes) % 2)) {
    if (!state.failed)
      emitError(at("self_attn.latent")) << "--kv-dtype fp8: a latent row of " << codes << " + " << width - codes
                                        << " values; the first must be a multiple of 4, the second even; give --kv-dtype bf16";
    state.failed = true;
    return cache(kind, {kBlockTokens, width}, activation);
  }
  const Type element = coded && !latent ? b.getI8Type() : state.cacheElement; // keys as integers: docs/decisions
  return cache(attn::CacheType::get(b.getContext(), kind, {kBlockTokens, width}, element, coded && latent ? codes : 0,
                                    attn::CacheSharding::replicated));
}

Value OpsBuilder::cache(attn::CacheType type) {
  std::string name = "pool." + attn::stringifyCacheKind(type.getKind()).str();
  std::string pool = state.pool(at(name), type, layers);
  return attn::CacheOp::create(b, at(pool), type, FlatSymbolRefAttr::get(b.getContext(), pool), layer);
}

void OpsBuilder::append(StringRef label, Value x, Value cache, int64_t begin) {
  if (onOwnRows())
    x = allGather(x, coll::Axis::tp);
  auto op = attn::AppendOp::create(b, at(label), x, cache, all.batch, static_cast<uint64_t>(begin));
  auto type = cast<attn::CacheType>(cache.getType());
  if (!type.hasCodes())
    return;
  const int64_t width = type.getShape()[1], bytes = type.getUnitBytes() / kBlockTokens;
  note(op, {"layout", llvm::formatv("{0} bytes a {1} row", bytes, attn::stringifyCacheKind(type.getKind())).str(),
            llvm::formatv("--kv-dtype fp8: {0} of its {1} values as 8-bit codes with scales; bf16 takes {2} bytes",
                          type.getRowCodes(), width, 2 * width)
                .str()});
}

} // namespace k31
