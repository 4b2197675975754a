#include "codegen/HostModule.h"
#include "codegen/KernelTable.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include <mutex>

using namespace llvm;

namespace k31 {

static constexpr StringLiteral kTriple = "x86_64-unknown-linux-gnu";

static Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

static Expected<std::unique_ptr<TargetMachine>> targetMachine(const HostLevel &level) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  Triple triple(kTriple);
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return fail(error);
  TargetOptions options;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(triple, level.cpu, level.more, options, Reloc::PIC_,
                                                                    CodeModel::Small, CodeGenOptLevel::Aggressive));
}

static Expected<std::unique_ptr<Module>> parse(StringRef bitcode, StringRef name, LLVMContext &context) {
  Expected<std::unique_ptr<Module>> module = parseBitcodeFile(MemoryBufferRef(bitcode, name), context);
  if (!module)
    return fail("bitcode of " + name + ": " + toString(module.takeError()));
  return module;
}

// The level decides the code, not the flags that the bitcode was made with.
static void setLevel(Module &module, const HostLevel &level, TargetMachine &machine) {
  module.setTargetTriple(Triple(kTriple));
  module.setDataLayout(machine.createDataLayout());
  std::string width = std::to_string(level.vectorBytes * 8);
  for (Function &f : module) {
    for (StringRef name : {"target-cpu", "target-features", "tune-cpu", "prefer-vector-width", "min-legal-vector-width",
                           "stack-protector-buffer-size", "frame-pointer"})
      f.removeFnAttr(name);
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", level.cpu);
    if (!level.more.empty())
      f.addFnAttr("target-features", level.more);
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("min-legal-vector-width", width);
  }
  if (NamedMDNode *ident = module.getNamedMetadata("llvm.ident"))
    ident->eraseFromParent();
}

// Replaces the external `name` by a constant of these words.
static void defineConstant(Module &module, StringRef name, ArrayRef<int32_t> words) {
  GlobalVariable *global = module.getNamedGlobal(name);
  if (!global)
    return;
  Constant *value = ConstantDataArray::get(module.getContext(), words);
  auto *defined = new GlobalVariable(module, value->getType(), /*isConstant=*/true, GlobalValue::InternalLinkage, value);
  defined->setAlignment(Align(4));
  global->replaceAllUsesWith(defined);
  global->eraseFromParent();
  defined->setName(name);
}

static void optimize(Module &module, TargetMachine &machine) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);
}

static Expected<std::string> emit(Module &module, TargetMachine &machine) {
  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return fail("LLVM cannot write objects for " + kTriple);
  passes.run(module);
  return std::string(object.data(), object.size());
}

// Functions that would have to come from a library.
static Error checkExternals(const Module &module, StringRef kernel) {
  for (const Function &f : module)
    if (f.isDeclaration() && !f.isIntrinsic() && !f.use_empty() && !is_contained({"memcpy", "memmove", "memset"}, f.getName()))
      return fail("kernel " + kernel + " needs function '" + f.getName() +
                  "', which it does not define; a kernel may call memcpy, memmove and memset only");
  for (const GlobalVariable &g : module.globals())
    if (g.isDeclaration() && !g.use_empty())
      return fail("kernel " + kernel + " needs variable '" + g.getName() + "', which it does not define");
  return Error::success();
}

Expected<std::string> compileHostObject(const HostKernel &kernel, StringRef regionBitcode, const HostLevel &level) {
  LLVMContext context;
  auto machine = targetMachine(level);
  if (!machine)
    return machine.takeError();
  auto module = parse(hostBitcode(kernel.name), kernel.name, context);
  if (!module)
    return module.takeError();
  Module &m = **module;
  Function *entry = m.getFunction("k31_entry");
  if (!entry || entry->isDeclaration())
    return fail("kernel " + kernel.name + " defines no k31_entry");
  m.setSourceFileName(kernel.symbol);
  m.setModuleIdentifier(kernel.symbol);

  setLevel(m, level, **machine);
  if (!regionBitcode.empty()) {
    auto region = parse(regionBitcode, "the fused region", context);
    if (!region)
      return region.takeError();
    setLevel(**region, level, **machine);
    for (Function &f : **region)
      if (!f.isDeclaration())
        f.addFnAttr(Attribute::AlwaysInline);
    if (Linker::linkModules(m, std::move(*region)))
      return fail("kernel " + kernel.name + " and its fused region do not link");
  }
  // Regions of phases that this Config does not have are called in dead code only.
  defineConstant(m, "k31_config", kernel.config);
  defineConstant(m, "k31_vector_bytes", {level.vectorBytes});
  defineConstant(m, "k31_bf16_products", {level.bf16Products});
  entry->setName(kernel.symbol);
  entry->setLinkage(GlobalValue::ExternalLinkage);
  entry->setVisibility(GlobalValue::DefaultVisibility);
  entry->setDSOLocal(false);
  internalizeModule(m, [&](const GlobalValue &v) { return v.getName() == kernel.symbol; });
  optimize(m, **machine);
  if (Error error = checkExternals(m, kernel.name))
    return error;
  std::string broken;
  raw_string_ostream stream(broken);
  if (verifyModule(m, &stream))
    return fail("kernel " + kernel.name + ": " + broken);
  return emit(m, **machine);
}

Expected<std::string> compileMemoryObject(const HostLevel &level) {
  LLVMContext context;
  auto machine = targetMachine(level);
  if (!machine)
    return machine.takeError();
  auto module = parse(hostBitcode("common.memory"), "common.memory", context);
  if (!module)
    return module.takeError();
  (*module)->setSourceFileName("memory");
  setLevel(**module, level, **machine);
  optimize(**module, **machine);
  return emit(**module, **machine);
}

} // namespace k31
