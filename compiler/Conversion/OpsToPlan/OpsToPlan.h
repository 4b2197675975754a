// The parts of convert-ops-to-plan. Each builds one kind of plan op at the end of the module and answers where things are.
#pragma once
#include "dialects/Attn/Attn.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <optional>
#include <set>

namespace k31::to_plan {

// Equal things in one arena: member i of `members` is at begin + i * stride. Without members there is one.
struct Place {
  int64_t begin = 0;
  int64_t stride = 0;
  llvm::SmallVector<int64_t> members;
  mlir::RankedTensorType type; // of one member

  // Empty when `layer` is no member.
  std::optional<int64_t> offsetOf(std::optional<int64_t> layer) const;
};
using Places = llvm::StringMap<Place>; // by symbol

// Layers by the stack or pool that the entries of one pipeline stage take them from; an entry without layers is a stack without
// members.
using Usage = llvm::StringMap<std::set<int64_t>>;
int64_t stageOf(mlir::func::FuncOp entry);
llvm::SmallVector<Usage> usageOfStages(llvm::ArrayRef<mlir::func::FuncOp> entries,
                                       const llvm::StringMap<mlir::func::FuncOp> &functions);

// plan.weights for every stack that an entry uses, and the bytes of the weights arena. Stages are other ranks: each begins at 0,
// and the arena is as large as the largest needs. Places are by stage.
mlir::FailureOr<int64_t> buildWeights(mlir::ModuleOp module, mlir::OpBuilder &builder, llvm::ArrayRef<Usage> stages,
                                      llvm::SmallVectorImpl<Places> &places);

// plan.state and plan.state_member, and the bytes of both arenas, in the same way.
struct StateBytes {
  int64_t paged = 0, slotted = 0;
};
mlir::FailureOr<StateBytes> buildState(mlir::ModuleOp module, mlir::OpBuilder &builder, llvm::ArrayRef<Usage> stages,
                                       llvm::SmallVectorImpl<Places> &places);

// plan.key, plan.mesh, plan.model and plan.file from the module's attributes.
mlir::LogicalResult buildFacts(mlir::ModuleOp module, mlir::OpBuilder &builder);

// An integer of one of the module's dictionaries; a diagnostic when it is missing.
mlir::FailureOr<int64_t> integerOf(mlir::ModuleOp module, llvm::StringRef dictionary, llvm::StringRef name);

// Kernels by name, config, region and the types of their arguments: launches that agree in all four share one.
class Kernels {
public:
  explicit Kernels(mlir::Operation *after) : last(after) {}
  // The symbol of the kernel of an op with attribute k31.kernel, whose launches have arguments of these types.
  mlir::FlatSymbolRefAttr of(mlir::Operation *op, mlir::DictionaryAttr kernel, llvm::ArrayRef<mlir::Type> args);

private:
  mlir::Operation *last; // the next plan.kernel goes after it
  llvm::DenseMap<mlir::Operation *, mlir::FlatSymbolRefAttr> known;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<planir::KernelOp>> candidates; // by {name, config, types}
  llvm::StringMap<int> count;                                                      // kernels of a name
};

// plan.note for what passes wrote down about the ops of level 2 (dialects/Support/Notes.h).
class Notes {
public:
  explicit Notes(mlir::Operation *after) : last(after) {}
  // The notes of an op of level 2, or of an entry's function, to what was made of it.
  mlir::LogicalResult give(mlir::Operation *from, mlir::Operation *to);

private:
  mlir::FailureOr<mlir::FlatSymbolRefAttr> of(mlir::Operation *op, mlir::Attribute note);

  mlir::Operation *last; // the next plan.note goes after it
  llvm::DenseMap<mlir::Attribute, mlir::FlatSymbolRefAttr> known;
};

// Memory of the arena `shared`, one area an axis over which collectives go by peer (codegen/kernels/coll/peer_area.h).
class Areas {
public:
  struct Area {
    int64_t begin, bytes;
  };
  // Of the axis of a collective with attribute k31.kernel; a diagnostic when another one has an area of another form there.
  mlir::FailureOr<Area> of(mlir::Operation *op, mlir::DictionaryAttr kernel);
  int64_t bytes() const { return end; }

private:
  llvm::DenseMap<int, Area> byAxis;
  int64_t end = 0;
};

// What an entry looks things up in.
struct Context {
  llvm::StringMap<mlir::func::FuncOp> functions;
  llvm::SmallVector<Places> weights, pools; // by stage
  Kernels *kernels;
  Notes *notes;
  Areas areas;
};

// plan.entry for a function with k31.entry; the bodies that it calls are written out.
mlir::LogicalResult buildEntry(mlir::func::FuncOp function, mlir::OpBuilder &builder, Context &context);

} // namespace k31::to_plan
