// The hardware that plans are made for: the only table of it.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace k31 {

// A variant of the host image. `cpu` and `features` are what LLVM generates code for; a plan names all of `required`, so that
// the runtime takes the image only where the processor has them.
struct HostLevel {
  llvm::StringLiteral name;
  llvm::StringLiteral cpu;
  llvm::StringLiteral features; // LLVM's feature string on top of the cpu
  llvm::ArrayRef<llvm::StringLiteral> required;
  int vectorBytes; // registers that the kernels may count on
  // A level that only some kernels gain from: the 32-bit variable that those declare and that is 1 here, 0 elsewhere. Other
  // kernels take the next level's object, and an image that would equal the next one is not made. Empty: every kernel has its own
  // object.
  llvm::StringLiteral marker;
};

class Target {
public:
  // A known and supported target, or one line that says why not.
  static llvm::Expected<const Target *> find(llvm::StringRef name);

  llvm::StringRef name() const { return targetName; }
  // fp32 values of a vector as kernels and fused regions see it.
  int vectorLanes() const { return lanes; }
  // Variants of the host image, best first.
  llvm::ArrayRef<HostLevel> hostLevels() const { return levels; }

private:
  Target(llvm::StringLiteral name, int lanes, llvm::ArrayRef<HostLevel> levels)
      : targetName(name), lanes(lanes), levels(levels) {}
  llvm::StringLiteral targetName;
  int lanes;
  llvm::ArrayRef<HostLevel> levels;
};

} // namespace k31
