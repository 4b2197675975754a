#include "test/codegen/compile.h"
#include "codegen/KernelTable.h"
#include "codegen/Regions.h"
#include "compiler/Passes.h"
#include "dialects/AllDialects.h"
#include "dialects/Interfaces/KernelOp.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/base/cpu.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace mlir;

namespace k31::test {

// Fuses and selects; the kernels of all ops, or nothing.
static bool prepare(const std::string &text, MLIRContext &context, OwningOpRef<ModuleOp> &module,
                    std::vector<HostKernel> &kernels) {
  DialectRegistry registry;
  registerDialects(registry);
  registerRegionDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return false;
  PassManager passes(&context);
  passes.addPass(createFuseOps());
  passes.addPass(createSelectKernels());
  if (failed(passes.run(*module)))
    return false;
  bool ok = true;
  module->walk([&](KernelOp op) {
    auto spec = op->getAttrOfType<DictionaryAttr>("k31.kernel");
    auto name = spec.getAs<StringAttr>("name");
    auto words = kernelConfigWords(name, spec.getAs<DictionaryAttr>("config"), [&] { return op->emitError(); });
    if (!(ok = ok && succeeded(words)))
      return;
    kernels.push_back({op->getLoc(), name.getValue(), std::move(*words), regionsOf(op), {}});
  });
  return ok;
}

Compiled::Compiled(const std::string &text, const std::string &cache) {
  if (!prepare(text, context, moduleOp, kernels)) {
    ADD_FAILURE() << "the text does not compile";
    return;
  }
  auto images = compileHostKernels(kernels, *llvm::cantFail(Target::find("cpu")), cache, &compileStats);
  if (failed(images)) {
    ADD_FAILURE() << "no machine code";
    return;
  }
  hostImages = std::move(*images);
}

Compiled::~Compiled() {
  for (void *library : libraries)
    dlclose(library);
}

std::string Compiled::names() const {
  return llvm::join(llvm::map_range(kernels, [](const HostKernel &k) { return k.name; }), ", ");
}

bool runsHere(const HostLevel &level) {
  for (llvm::StringRef feature : level.required)
    if (!cpu_has({feature.data(), feature.size()}))
      return false;
  return true;
}

static void *load(const std::string &code) {
  char path[] = "/tmp/k31-codegen-test-XXXXXX";
  close(mkstemp(path));
  std::ofstream(path, std::ios::binary) << code;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    ADD_FAILURE() << dlerror();
  unlink(path);
  return library;
}

void Compiled::run(int index, std::vector<const void *> args, const std::function<void()> &before,
                   const std::function<void()> &check) {
  ASSERT_LT(index, static_cast<int>(kernels.size()));
  int levels = 0;
  for (const HostImage &image : hostImages) {
    if (!runsHere(*image.level))
      continue;
    SCOPED_TRACE(image.level->name.str());
    void *library = load(image.code);
    ASSERT_TRUE(library);
    libraries.push_back(library);
    auto entry = reinterpret_cast<Entry>(dlsym(library, kernels[index].symbol.c_str()));
    ASSERT_TRUE(entry) << kernels[index].symbol;
    for (uint32_t tasks : {1u, 3u}) {
      before();
      for (uint32_t task = 0; task < tasks; ++task)
        entry(args.data(), task, tasks);
      check();
    }
    ++levels;
  }
  if (levels == 0)
    GTEST_SKIP() << "this processor runs no level of the host target";
}

std::string errorsOf(const std::string &text) {
  MLIRContext context;
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
    errors += d.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module;
  std::vector<HostKernel> kernels;
  if (prepare(text, context, module, kernels))
    (void)compileHostKernels(kernels, *llvm::cantFail(Target::find("cpu")), "");
  return errors;
}

uint16_t toBf16(float v) {
  uint32_t u;
  std::memcpy(&u, &v, 4);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
float fromBf16(uint16_t v) {
  uint32_t u = static_cast<uint32_t>(v) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

} // namespace k31::test
