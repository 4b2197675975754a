#include "codegen/HostBackend.h"
#include "codegen/HostModule.h"
#include "codegen/KernelTable.h"
#include "codegen/ObjectCache.h"
#include "codegen/Regions.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <atomic>
#include <map>

using namespace llvm;
using namespace mlir;

namespace k31 {

// Changes whenever the same input would give other code: part of every symbol and cache key.
static constexpr StringLiteral kGeneration = "host 2, LLVM " LLVM_VERSION_STRING;

// The fused regions as bitcode; it depends on them alone.
static FailureOr<std::string> regionBitcode(ArrayRef<Region *> regions) {
  LLVMContext context;
  std::unique_ptr<llvm::Module> module = lowerRegions(regions, context);
  if (!module)
    return failure();
  std::string bitcode;
  raw_string_ostream stream(bitcode);
  WriteBitcodeToFile(*module, stream);
  return bitcode;
}

static std::string symbolOf(const HostKernel &kernel, StringRef region) {
  const StringRef config(reinterpret_cast<const char *>(kernel.config.data()), kernel.config.size() * sizeof(int32_t));
  return symbolOf({kGeneration, hostBitcode(kernel.name), config, region});
}

namespace {

// Levels that differ only in how they multiply bf16 give the same code where a kernel does not: the one that does without.
const HostLevel *levelOfCode(const HostLevel *level, ArrayRef<HostLevel> all, StringRef kernel) {
  if (level->bf16Products && !hostBitcode(kernel).contains("k31_bf16_products"))
    for (const HostLevel &plain : all)
      if (!plain.bf16Products && plain.cpu == level->cpu)
        return &plain;
  return level;
}

struct Job {
  const HostKernel *kernel;
  const std::string *region;
  const HostLevel *level;
  std::string object;
};

class Compiler {
public:
  Compiler(MutableArrayRef<HostKernel> kernels, const Target &target, SmallVector<const HostLevel *> levels, ObjectCache cache)
      : kernels(kernels), target(target), levels(std::move(levels)), cache(std::move(cache)),
        context(kernels.front().loc.getContext()) {}

  LogicalResult lowerRegions() {
    regions.resize(kernels.size());
    ParallelDiagnosticHandler order(context);
    return failableParallelForEachN(context, 0, kernels.size(), [&](size_t i) -> LogicalResult {
      order.setOrderIDForThread(i);
      LogicalResult result = success();
      if (!kernels[i].regions.empty()) {
        FailureOr<std::string> bitcode = regionBitcode(kernels[i].regions);
        if (succeeded(bitcode))
          regions[i] = std::move(*bitcode);
        result = failed(bitcode) ? failure() : success();
      }
      order.eraseOrderIDForThread();
      return result;
    });
  }

  // One job a symbol and level of its code, in the order of symbols.
  void plan() {
    for (auto [i, kernel] : llvm::enumerate(kernels)) {
      kernel.symbol = symbolOf(kernel, regions[i]);
      bySymbol.emplace(kernel.symbol, i);
    }
    for (const HostLevel *level : levels)
      for (const auto &[symbol, i] : bySymbol) {
        const HostLevel *code = levelOfCode(level, target.hostLevels(), kernels[i].name);
        if (jobOf.try_emplace({symbol, code}, jobs.size()).second)
          jobs.push_back({&kernels[i], &regions[i], code, {}});
      }
  }

  LogicalResult compile(HostCompileStats &stats) {
    std::atomic<int> made = 0;
    ParallelDiagnosticHandler order(context);
    LogicalResult result = failableParallelForEachN(context, 0, jobs.size(), [&](size_t i) -> LogicalResult {
      order.setOrderIDForThread(i);
      LogicalResult one = compile(jobs[i], made);
      order.eraseOrderIDForThread();
      return one;
    });
    cache.trim();
    stats.compiled = made;
    stats.cached = static_cast<int>(jobs.size()) - made;
    return result;
  }

  FailureOr<std::vector<HostImage>> link() {
    std::vector<HostImage> images;
    for (const HostLevel *level : levels) {
      Expected<std::string> memory = compileMemoryObject(*level);
      if (!memory)
        return emitError(kernels.front().loc) << toString(memory.takeError());
      std::vector<std::pair<std::string, std::string>> objects;
      for (const auto &[symbol, i] : bySymbol) {
        const HostLevel *code = levelOfCode(level, target.hostLevels(), kernels[i].name);
        objects.emplace_back(symbol, jobs[jobOf.at({symbol, code})].object);
      }
      objects.emplace_back("memory", std::move(*memory));
      Expected<std::string> code = linkHostImage(objects);
      if (!code)
        return emitError(kernels.front().loc) << toString(code.takeError());
      images.push_back({level, std::move(*code)});
    }
    return images;
  }

private:
  LogicalResult compile(Job &job, std::atomic<int> &made) {
    std::string key = job.kernel->symbol + "-" + job.level->name.str();
    if (std::optional<std::string> known = cache.load(key)) {
      job.object = std::move(*known);
      return success();
    }
    Expected<std::string> object = compileHostObject(*job.kernel, *job.region, *job.level);
    if (!object)
      return emitError(job.kernel->loc) << toString(object.takeError());
    job.object = std::move(*object);
    cache.store(key, job.object);
    ++made;
    return success();
  }

  MutableArrayRef<HostKernel> kernels;
  const Target &target;
  SmallVector<const HostLevel *> levels;
  ObjectCache cache;
  MLIRContext *context;
  std::vector<std::string> regions;       // bitcode, one a kernel
  std::map<std::string, size_t> bySymbol; // a kernel of each symbol
  std::vector<Job> jobs;
  std::map<std::pair<std::string, const HostLevel *>, size_t> jobOf;
};

} // namespace

FailureOr<std::vector<HostImage>> compileHostKernels(MutableArrayRef<HostKernel> kernels, const Target &target, StringRef cache,
                                                     HostCompileStats *stats, ArrayRef<std::string> only) {
  if (kernels.empty())
    return std::vector<HostImage>();
  SmallVector<const HostLevel *> levels;
  for (const HostLevel &level : target.hostLevels())
    if (only.empty() || llvm::is_contained(only, level.name))
      levels.push_back(&level);
  for (const std::string &name : only)
    if (llvm::none_of(levels, [&](const HostLevel *level) { return level->name == name; }))
      return emitError(kernels.front().loc)
             << "processor level '" << name << "' is unknown; levels of target " << target.name() << " are "
             << llvm::join(llvm::map_range(target.hostLevels(), [](const HostLevel &level) { return level.name; }), ", ");
  for (const HostKernel &kernel : kernels)
    if (hostBitcode(kernel.name).empty())
      return emitError(kernel.loc) << "there is no host kernel '" << kernel.name << "'; kernels are "
                                   << llvm::join(kernelNames(), ", ");
  Expected<ObjectCache> objects = ObjectCache::open(cache);
  if (!objects)
    return emitError(kernels.front().loc) << toString(objects.takeError());
  HostCompileStats own;
  Compiler compiler(kernels, target, std::move(levels), std::move(*objects));
  if (failed(compiler.lowerRegions()))
    return failure();
  compiler.plan();
  if (failed(compiler.compile(stats ? *stats : own)))
    return failure();
  return compiler.link();
}

} // namespace k31
