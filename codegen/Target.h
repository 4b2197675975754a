// The hardware that plans are made for: the only table of it.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace k31 {

// A variant of the host image. Code is generated for LLVM's processor `cpu` with the features `more`; a plan names all of
// `required`, so that the runtime takes the image only where the processor has them.
struct HostLevel {
  llvm::StringLiteral name;
  llvm::StringLiteral cpu, more;
  llvm::ArrayRef<llvm::StringLiteral> required;
  int vectorBytes;  // registers that the kernels may count on
  int bf16Products; // k31_bf16_products of the kernels
};

class Target {
public:
  // A known and supported target, or one line that says why not.
  static llvm::Expected<const Target *> find(llvm::StringRef name);

  // Of one device, or of the host and all its cores, for choices between ways to share work over ranks; measured, of bf16.
  struct Speeds {
    double memory, cache; // bytes a second: streamed, and gathered from what stays in the second-level cache
    double products;      // multiplications and additions a second
    double launch;        // seconds that a launch takes beside its work
    bool tiles;           // products work on whole tiles of 64 rows
  };
  const Speeds &speeds() const;

  llvm::StringRef name() const { return targetName; }
  // CUDA kernels; host kernels otherwise.
  bool isCuda() const { return levels.empty(); }
  // Variants of the host image, best first; none on a GPU.
  llvm::ArrayRef<HostLevel> hostLevels() const { return levels; }

private:
  Target(llvm::StringLiteral name, llvm::ArrayRef<HostLevel> levels) : targetName(name), levels(levels) {}
  llvm::StringLiteral targetName;
  llvm::ArrayRef<HostLevel> levels;
};

} // namespace k31
