// Level-2 ops of one bucket. Conversions see values of level 1 through get(); liveness, weights and caches are handled here.
#pragma once
#include "compiler/Conversion/K31ToOps/Buckets.h"
#include "compiler/Conversion/K31ToOps/Scalars.h"
#include "compiler/Mesh.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Coll/Coll.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include <map>
#include <set>

namespace k31 {

// How a weight is shared out over the ranks of an axis: each holds ceil(units / ranks) whole units. Rows and columns of a tensor
// are `units` equal groups (the rows of a head are one), members are experts. No unit on an axis of one rank.
struct Cut {
  coll::Axis axis = coll::Axis::tp;
  coll::ShardOf of = coll::ShardOf::rows;
  int64_t units = 0, ranks = 1;
  bool besides = false; // whole on every rank, beside the share of it that other buckets read

  bool isCut() const { return ranks > 1; }
  bool servesAll() const { return !isCut() || share(units) * (ranks - 1) < units; } // does every rank get a unit?
  int64_t share(int64_t whole) const { return isCut() ? whole / units * ((units + ranks - 1) / ranks) : whole; }
};

// What the buckets of a module share: weight stacks and cache pools.
class ModuleState {
public:
  ModuleState(mlir::ModuleOp module, const Mesh &mesh, const EntryOptions &options);

  // @stack.NAME over nn.tensor symbols of equal members and element types. `rows` of each part are used, all by default, of which
  // a rank holds what `cut` leaves it. All who ask for a name must ask for the same parts and rows.
  nn::StackOp stack(mlir::Location loc, llvm::StringRef name, llvm::ArrayRef<mlir::FlatSymbolRefAttr> parts,
                    llvm::ArrayRef<int64_t> rows = {}, Cut cut = {});
  bool hasMembers(nn::StackOp stack);
  int64_t rows(mlir::FlatSymbolRefAttr part), columns(mlir::FlatSymbolRefAttr part); // of a tensor, whole

  // @pool.KIND for caches of this type; the layers of all askers become its members.
  std::string pool(mlir::Location loc, attn::CacheType type, llvm::ArrayRef<int64_t> layers);
  void declarePools(); // once all layers have asked

  // The first refusal of the mesh is told, at the module.
  void refuse(const std::string &why);

  const Mesh mesh;
  const EntryOptions options;
  bool failed = false;     // a diagnostic was given
  mlir::Type cacheElement; // of paged caches

private:
  struct Pool {
    attn::CacheType type;
    std::set<int64_t> members;
  };
  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  mlir::OpBuilder declarations; // behind the nn.tensor ops
  std::map<std::string, Pool> pools;
};

class OpsBuilder {
public:
  OpsBuilder(ModuleState &state, const Bucket &bucket, mlir::Type activation, mlir::OpBuilder &b)
      : b(b), bucket(bucket), activation(activation), state(state) {}

  using Symbols = llvm::ArrayRef<mlir::FlatSymbolRefAttr>;
  using Formula = llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange)>;

  // ---- the function that is being filled
  mlir::IRMapping values;         // level 1 to level 2
  mlir::Value live, batch, layer; // layer: null outside of bodies
  mlir::Value tensorRank;         // i32 [1]: this rank's coordinate on tp; null when tp is 1
  mlir::Value expertRank;         // i32 [1]: the same on ep
  mlir::Value liveOfGroups;       // i32 [edp]: live rows of each dp group of the expert group; null when there is one
  llvm::ArrayRef<int64_t> layers; // that the body serves
  // All rows, and those of this rank where a tp group shares out the residual stream: values of level 1 are then [T / tp, C].
  struct RowSet {
    mlir::Value live, batch;
  } all, own;
  void setRows(mlir::Value allLive, mlir::Value allBatch) {
    live = allLive, batch = allBatch;
    all = own = {live, batch};
  }
  bool onOwnRows() const { return bucket.isSharded() && live == own.live; }
  mlir::Value get(mlir::Value old) { return values.lookup(old); }

  // ---- types
  mlir::Type f32() { return b.getF32Type(); }
  mlir::RankedTensorType rowsOf(mlir::Value x, int64_t columns, mlir::Type element);
  static int64_t columnsOf(mlir::Value x) { return mlir::cast<mlir::RankedTensorType>(x.getType()).getShape().back(); }

  // ---- weights: a symbol of an op's dictionary, alone or stacked with others under a joint name
  mlir::FlatSymbolRefAttr symbol(mlir::DictionaryAttr weights, llvm::StringRef name);
  mlir::Value weight(mlir::FlatSymbolRefAttr part, llvm::ArrayRef<int64_t> rows = {}, Cut cut = {});
  mlir::Value weight(llvm::StringRef name, Symbols parts, Cut cut = {});
  static std::string label(mlir::FlatSymbolRefAttr part); // "self_attn.o_proj": for locations
  mlir::Location at(llvm::StringRef name) { return mlir::NameLoc::get(b.getStringAttr(name)); }

  // ---- ops
  mlir::Value linear(mlir::Value x, mlir::FlatSymbolRefAttr w, mlir::Type element, Cut cut = {});
  mlir::Value linear(mlir::Value x, llvm::StringRef name, Symbols parts, mlir::Type element, Cut cut = {});
  mlir::Value columns(mlir::Value x, int64_t begin, int64_t end);
  // Inputs broadcast by shape; the result has the shape of the first one.
  mlir::Value map(llvm::StringRef label, llvm::StringRef name, mlir::ValueRange inputs, mlir::Type element, Formula formula);
  mlir::Value row(llvm::StringRef label, llvm::StringRef name, mlir::ValueRange inputs, mlir::Type element, Formula formula,
                  int64_t groups = 1);
  mlir::Value rmsNorm(mlir::Value x, mlir::FlatSymbolRefAttr gain, double eps);
  mlir::Value add(llvm::StringRef label, mlir::Value x, mlir::Value y);
  mlir::Value cache(attn::CacheKind kind, llvm::ArrayRef<int64_t> unit, mlir::Type element);
  // A paged cache of `width` values a row, in the element type that the options ask for; fp8: the first `codes` of
  // a latent row are codes, and all of a key.
  mlir::Value pagedCache(attn::CacheKind kind, int64_t width, int64_t codes);
  mlir::Value cache(attn::CacheType type);
  // Every rank's cache gets all rows: on own rows those of the tp group are gathered first.
  void append(llvm::StringRef label, mlir::Value x, mlir::Value cache, int64_t begin);

  // ---- ranks (Parallelism.cpp); a diagnostic where a rank would hold nothing
  Cut cutOf(coll::Axis axis, coll::ShardOf of, int64_t units, llvm::StringRef what);
  Cut headRows(int64_t heads) { return cutOf(coll::Axis::tp, coll::ShardOf::rows, heads, "heads"); }
  Cut headColumns(int64_t heads) { return cutOf(coll::Axis::tp, coll::ShardOf::columns, heads, "heads"); }
  // The hidden width of a gated MLP: the rows of gate and up, the columns of down.
  Cut hidden(coll::ShardOf of, int64_t width);
  mlir::Value allReduce(mlir::Value x, coll::Axis axis);
  mlir::Value allGather(mlir::Value x, coll::Axis axis);
  mlir::Value reduceScatter(mlir::Value x, coll::Axis axis);
  // The columns of this rank, and back: [T, share] of each rank to [T, columns] on all.
  mlir::Value partOfColumns(mlir::Value x, Cut cut);
  mlir::Value joinColumns(mlir::Value x, coll::Axis axis, int64_t columns);

  // ---- rows of a tp group (Rows.cpp); without shared rows they are all of them everywhere
  void makeOwn();                     // sets `own`, of an entry
  mlir::Value full(mlir::Value old);  // all rows of a value of level 1
  mlir::Value sumRows(mlir::Value x); // [T, C] of each rank, added up: the rows of the residual stream
  mlir::Value ownRows(mlir::Value x); // those of [T, C] that is equal on all ranks

  mlir::OpBuilder &b;
  const Bucket &bucket;
  const mlir::Type activation;
  ModuleState &state;
};

// Ops that are built meanwhile run over these rows.
class OnRows {
public:
  OnRows(OpsBuilder &o, const OpsBuilder::RowSet &rows) : o(o), before{o.live, o.batch} {
    o.live = rows.live, o.batch = rows.batch;
  }
  ~OnRows() { o.live = before.live, o.batch = before.batch; }
  OnRows(const OnRows &) = delete;

private:
  OpsBuilder &o;
  OpsBuilder::RowSet before;
};

} // namespace k31
