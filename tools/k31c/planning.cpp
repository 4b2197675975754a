#include "tools/k31c/planning.h"
#include "compiler/Export/PlanFile.h"
#include "compiler/Pipeline.h"
#include "dialects/AllDialects.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/base/cat.h"
#include "runtime/plan/plan_file.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <filesystem>

namespace k31::tool {

std::string defaultCacheDir() {
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return cat(cache, "/k31/kernels");
  if (const char *home = std::getenv("HOME"); home && *home == '/')
    return cat(home, "/.cache/k31/kernels");
  return "";
}

int64_t cacheTokensOf(int64_t maxContext, int64_t maxBatch) {
  return (maxContext + kBlockTokens - 1) / kBlockTokens * kBlockTokens * maxBatch;
}

namespace {

// Errors of the compiler as one line: "self_attn.q_proj: what is wrong". The rest of the diagnostics are for people who debug it.
class OneLine {
public:
  OneLine(mlir::MLIRContext &context, bool tellNews)
      : handler(&context, [this, tellNews](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && message.empty())
            message = where(diagnostic.getLocation()) + diagnostic.str();
          // Warnings, what is left out of a model and what was reused are news for the user; other remarks are for people who
          // debug the compiler.
          const std::string place = where(diagnostic.getLocation());
          if (tellNews && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
            news.push_back("warning: " + one_line(diagnostic.str()));
          if (tellNews && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark &&
              (place == "layers: " || place == "kernels: " || place == "vision_tower: "))
            news.push_back("note: " + one_line(diagnostic.str()));
          return mlir::success();
        }) {}

  std::string message;
  std::vector<std::string> news; // for when nothing was refused

private:
  static std::string where(mlir::Location loc) {
    if (auto name = llvm::dyn_cast<mlir::NameLoc>(loc))
      return name.getName().str() + ": ";
    if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(loc))
      return file.getFilename().str() + ": ";
    return "";
  }
  mlir::ScopedDiagnosticHandler handler;
};

// What the passes read; every entry but the target becomes an option of the plan's key.
void setOptions(mlir::ModuleOp module, const CompileOptions &options) {
  mlir::Builder b(module.getContext());
  const int64_t cacheTokens = options.cacheTokens ? options.cacheTokens : cacheTokensOf(options.maxContext, options.maxBatch);
  std::vector<mlir::NamedAttribute> entries;
  auto number = [&](const char *name, int64_t value) { entries.emplace_back(b.getStringAttr(name), b.getI64IntegerAttr(value)); };
  auto text = [&](const char *name, const std::string &value) {
    entries.emplace_back(b.getStringAttr(name), b.getStringAttr(value));
  };
  number("max_context", options.maxContext), number("max_batch", options.maxBatch), number("cache_tokens", cacheTokens);
  number("prefill_chunk", options.prefillChunk), number("logit_rows", options.logitRows);
  text("activations", options.activations), text("target", options.target);
  if (!options.kvDtype.empty() && options.kvDtype != options.activations) // else it says what is so anyway
    text("kv_dtype", options.kvDtype);
  if (options.mlaNormEps)
    text("mla_norm_eps", cat(*options.mlaNormEps));
  if (options.range)
    number("layer_begin", options.range->begin), number("layer_end", options.range->end);
  if (options.moeExchange != "auto" && !options.mesh.empty()) // one rank exchanges nothing
    text("moe_exchange", options.moeExchange);
  if (options.transport != "library" && !options.mesh.empty())
    text("transport", options.transport);
  if (options.fuseSums != "auto" && !options.mesh.empty())
    text("fuse_sums", options.fuseSums);
  if (options.sequenceParallel != "auto")
    text("sequence_parallel", options.sequenceParallel);
  if (options.overlap != "on" && options.target != "cpu") // a host plan has one stream anyway
    text("overlap", options.overlap);
  if (options.mla != "auto")
    text("mla", options.mla);
  if (!options.cpuLevels.empty())
    text("cpu_levels", llvm::join(options.cpuLevels, ","));
  module->setAttr("k31.options", b.getDictionaryAttr(entries));
}

std::error_code makeFolder(const std::string &path) {
  const std::error_code error = llvm::sys::fs::create_directories(path); // fine with a file of that name
  return error || llvm::sys::fs::is_directory(path) ? error : std::make_error_code(std::errc::not_a_directory);
}

mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

} // namespace

Planning::Planning(const CompileOptions &options) : context(allDialects()) {
  import.modelDir = options.model;
  import.activations = options.activations;
  import.mlaNormEps = options.mlaNormEps;
  import.layers = options.range;
}

std::string Planning::lower(const CompileOptions &o, bool kernels, mlir::OwningOpRef<mlir::ModuleOp> &module) {
  OneLine diagnostics(context, kernels);
  auto why = [&](const std::string &otherwise) { return diagnostics.message.empty() ? otherwise : diagnostics.message; };
  if (!imported) {
    mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> made = importModel(context, import);
    if (mlir::failed(made))
      return why(o.model + " cannot be imported");
    imported = std::move(*made);
  }
  module = imported->clone();
  setOptions(module.get(), o);

  mlir::PassManager manager(&context);
  if (kernels && !o.dumpDir.empty()) {
    if (const std::error_code error = makeFolder(o.dumpDir))
      return "--dump-ir " + o.dumpDir + ": " + error.message() + "; give a folder that can be written";
    dumpAfterEachPass(manager, o.dumpDir);
  }
  std::string cacheDir = o.noCache || !kernels ? "" : o.cacheDir;
  if (!cacheDir.empty())
    if (const std::error_code error = makeFolder(cacheDir)) {
      if (cacheDir != defaultCacheDir())
        return "--cache-dir " + cacheDir + ": " + error.message() + "; give a folder that can be written";
      std::printf("note: no kernels are kept: %s: %s\n", one_line(cacheDir).c_str(), error.message().c_str());
      cacheDir.clear();
    }
  buildPipeline(manager, {o.target, o.mesh, cacheDir, o.cpuLevels, kernels});
  if (mlir::failed(manager.run(module.get())) || !diagnostics.message.empty())
    return why("the compiler failed without a reason; please report it");
  for (const std::string &line : diagnostics.news)
    std::puts(line.c_str());
  return "";
}

PlanBytes Planning::makePlan(const CompileOptions &options) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (std::string why = lower(options, true, module); !why.empty())
    return {"", why};
  mlir::FailureOr<std::string> bytes = exportPlan(module.get());
  if (mlir::failed(bytes))
    return {"", "the plan cannot be exported"};
  // What Load refuses is no plan: sizes that nothing can address, or a fault of ours.
  if (auto checked = check_plan(std::as_bytes(std::span(*bytes))); !checked) {
    llvm::StringRef why = checked.error().message;
    why.consume_back("; the plan is wrong, compile it again");
    return {"", cat("no runtime would load this plan: ", why.str(), "; choose smaller sizes, or report it")};
  }
  return {std::move(*bytes), ""};
}

std::optional<uint64_t> Planning::arenaBytes(const CompileOptions &options) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (!lower(options, false, module).empty())
    return std::nullopt;
  uint64_t sum = 0;
  for (auto arena : module->getOps<planir::ArenaOp>())
    sum += static_cast<uint64_t>(arena.getBytes());
  return sum;
}

} // namespace k31::tool
