// Text of level-2 IR -> fuse-ops, select-kernels, machine code -> functions of this process.
#pragma once
#include "codegen/HostBackend.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <string>
#include <vector>

namespace k31::test {

using Entry = void (*)(const void *args, uint32_t task, uint32_t tasks);

// The kernels of a module, in program order.
class Compiled {
public:
  // Fails the test when the text does not compile.
  explicit Compiled(const std::string &text, const std::string &cache = "");
  ~Compiled();
  Compiled(const Compiled &) = delete;

  std::string names() const; // "nn.linear, nn.row"
  const std::vector<HostImage> &images() const { return hostImages; }
  const HostCompileStats &stats() const { return compileStats; }
  mlir::ModuleOp module() { return *moduleOp; }

  // Runs kernel `index` once at every level that this processor has, split into 1 and 3 tasks. `check` sees each outcome.
  void run(int index, std::vector<const void *> args, const std::function<void()> &before, const std::function<void()> &check);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> moduleOp;
  std::vector<HostKernel> kernels;
  std::vector<HostImage> hostImages;
  HostCompileStats compileStats;
  std::vector<void *> libraries;
};

// What is said about a text that must not compile; empty when it does.
std::string errorsOf(const std::string &text);

bool runsHere(const HostLevel &level);

uint16_t toBf16(float v);
float fromBf16(uint16_t v);

} // namespace k31::test
