// k31c compile: a checkpoint to a plan file, with its memory table.
#include "codegen/Nvrtc.h"
#include "codegen/Target.h"
#include "compiler/Export/PlanFile.h"
#include "compiler/Import/ImportModel.h"
#include "compiler/Pipeline.h"
#include "dialects/AllDialects.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/base/cat.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/schema/plan_generated.h"
#include "tools/k31c/commands.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <chrono>
#include <filesystem>

namespace k31::tool {
namespace {

// Where users expect caches; empty when the system does not say where.
std::string defaultCacheDir() {
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return cat(cache, "/k31/kernels");
  if (const char *home = std::getenv("HOME"); home && *home == '/')
    return cat(home, "/.cache/k31/kernels");
  return "";
}

struct Options {
  std::string model, target, mesh, activations = "bf16", memoryLimit, dumpDir, cacheDir = defaultCacheDir(), output = "model.k31";
  int64_t maxContext = 8192, maxBatch = 8, cacheTokens = 0, prefillChunk = 2048, logitRows = 64;
  std::string sequenceParallel = "auto", mla = "auto";
  bool noCache = false;
  std::vector<std::string> cpuLevels; // best first; empty: all
  std::optional<double> mlaNormEps;
  std::string layers;              // as given
  std::optional<LayerRange> range; // the same, read
};

// Errors of the compiler as one line: "self_attn.q_proj: what is wrong". The rest of the diagnostics are for people who debug it.
class OneLine {
public:
  explicit OneLine(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && message.empty())
            message = where(diagnostic.getLocation()) + diagnostic.str();
          // What a slice leaves out and what was reused are news for the user; other remarks are for people who debug the
          // compiler.
          const std::string place = where(diagnostic.getLocation());
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark && (place == "layers: " || place == "kernels: "))
            std::printf("note: %s\n", one_line(diagnostic.str()).c_str());
          return mlir::success();
        }) {}

  std::string message;

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

// Whole blocks for every sequence. At most 2^60: both options end at 2^30.
int64_t cacheTokensOf(int64_t maxContext, int64_t maxBatch) {
  return (maxContext + kBlockTokens - 1) / kBlockTokens * kBlockTokens * maxBatch;
}

// What the passes read; every entry but the target becomes an option of the plan's key.
void setOptions(mlir::ModuleOp module, const Options &options) {
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
  if (options.mlaNormEps)
    text("mla_norm_eps", cat(*options.mlaNormEps));
  if (options.range)
    number("layer_begin", options.range->begin), number("layer_end", options.range->end);
  if (options.sequenceParallel != "auto")
    text("sequence_parallel", options.sequenceParallel);
  if (options.mla != "auto")
    text("mla", options.mla);
  if (!options.cpuLevels.empty())
    text("cpu_levels", llvm::join(options.cpuLevels, ","));
  module->setAttr("k31.options", b.getDictionaryAttr(entries));
}

int usage(const Options &o) {
  if (o.target.empty())
    return fail(2, "--target is missing: no target is ever guessed; give --target cpu or --target sm_90a");
  llvm::Expected<const Target *> known = Target::find(o.target);
  if (!known) {
    llvm::consumeError(known.takeError());
    return fail(2, "--target " + o.target + ": unknown; give --target cpu or --target sm_90a");
  }
  const Target &target = **known;
  if (target.isCuda()) {
    if (!o.cpuLevels.empty())
      return fail(2, "--cpu-level " + llvm::join(o.cpuLevels, ",") + ": --target sm_90a has no processor levels");
    if (llvm::Error error = Nvrtc::open().takeError())
      return fail(1, llvm::toString(std::move(error)));
  }
  std::string levels;
  for (const HostLevel &level : target.hostLevels())
    levels += (levels.empty() ? "" : ", ") + level.name.str();
  for (const std::string &level : o.cpuLevels)
    if (llvm::none_of(target.hostLevels(), [&](const HostLevel &other) { return other.name == level; }))
      return fail(2, "--cpu-level " + level + ": unknown; the levels are " + levels);
  // The plan counts blocks in 32 bits.
  const int64_t tokens = o.cacheTokens ? o.cacheTokens : cacheTokensOf(o.maxContext, o.maxBatch);
  if (tokens > INT32_MAX * kBlockTokens)
    return fail(2, o.cacheTokens ? cat("--cache-tokens ", tokens, ": a plan holds at most ", INT32_MAX * kBlockTokens)
                                 : cat("--max-context ", o.maxContext, " x --max-batch ", o.maxBatch, " is ", tokens,
                                       " cached tokens, a plan holds at most ", INT32_MAX * kBlockTokens,
                                       "; give --cache-tokens, or lower one of them"));
  if (o.mlaNormEps && !(*o.mlaNormEps >= 0 && *o.mlaNormEps <= 1)) // as the config's own; not NaN
    return fail(2, cat("--mla-norm-eps ", *o.mlaNormEps, ": expected a number from 0 to 1, such as 1e-6"));
  if (!o.layers.empty() && !o.range)
    return fail(2, "--layers " + o.layers + ": expected A:B with 0 <= A < B, layers from A up to but not including B");
  if (!o.memoryLimit.empty() && !parseMemoryLimit(o.memoryLimit))
    return fail(2, "--memory-limit " + o.memoryLimit + ": expected h100, h200 or bytes such as 24G");
  return 0;
}

std::error_code makeFolder(const std::string &path) {
  const std::error_code error = llvm::sys::fs::create_directories(path); // fine with a file of that name
  return error || llvm::sys::fs::is_directory(path) ? error : std::make_error_code(std::errc::not_a_directory);
}

int compile(const Options &o) {
  if (int code = usage(o))
    return code;
  const auto begin = std::chrono::steady_clock::now();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  OneLine diagnostics(context);
  auto failed = [&](const std::string &otherwise) {
    return fail(1, diagnostics.message.empty() ? otherwise : diagnostics.message);
  };

  ImportOptions import;
  import.modelDir = o.model;
  import.activations = o.activations;
  import.mlaNormEps = o.mlaNormEps;
  import.layers = o.range;
  auto module = importModel(context, import);
  if (mlir::failed(module))
    return failed(o.model + " cannot be imported");
  setOptions(module->get(), o);

  mlir::PassManager manager(&context);
  if (!o.dumpDir.empty()) {
    if (const std::error_code error = makeFolder(o.dumpDir))
      return fail(1, "--dump-ir " + o.dumpDir + ": " + error.message() + "; give a folder that can be written");
    dumpAfterEachPass(manager, o.dumpDir);
  }
  std::string cacheDir = o.noCache ? "" : o.cacheDir;
  if (!cacheDir.empty())
    if (const std::error_code error = makeFolder(cacheDir)) {
      if (cacheDir != defaultCacheDir())
        return fail(1, "--cache-dir " + cacheDir + ": " + error.message() + "; give a folder that can be written");
      std::printf("note: no kernels are kept: %s: %s\n", one_line(cacheDir).c_str(), error.message().c_str());
      cacheDir.clear();
    }
  buildPipeline(manager, {o.target, o.mesh, cacheDir, o.cpuLevels});
  if (mlir::failed(manager.run(module->get())) || !diagnostics.message.empty())
    return failed("the compiler failed without a reason; please report it");

  mlir::FailureOr<std::string> flatbuffer = exportPlan(module->get());
  if (mlir::failed(flatbuffer))
    return failed("the plan cannot be exported");
  const plan::Plan &plan = *plan::GetPlan(flatbuffer->data());
  MemoryTable table = memoryTable(plan);
  for (uint32_t stage = 1; stage < plan.mesh()->pp(); ++stage) // the advice is for the stage with the largest caches
    table.bytesPerToken = std::max(table.bytesPerToken, memoryTable(plan, stage).bytesPerToken);
  std::fputs(memoryText(plan).c_str(), stdout);
  if (!o.memoryLimit.empty())
    if (const std::string why = overLimit(table, *parseMemoryLimit(o.memoryLimit)); !why.empty())
      return fail(1, why);
  if (auto written = write_plan(o.output, std::as_bytes(std::span(*flatbuffer))); !written)
    return fail(1, written.error().message);

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s: %u kernels, %u entries, %s, made in %.1f s\n", o.output.c_str(), plan.kernels()->size(),
              plan.entries()->size(), readableBytes(flatbuffer->size() + kPlanTrailerBytes).c_str(), seconds);
  return 0;
}

} // namespace

Command addCompile(CLI::App &app) {
  auto options = std::make_shared<Options>();
  Options &o = *options;
  CLI::App *command =
      app.add_subcommand("compile", "Compile a checkpoint to a plan, which holds all machine code and no weights.");
  command->footer("Example:\n  k31c compile models/tiny-k31 --target cpu --max-context 4096 --max-batch 2 -o tiny.k31");
  const CLI::Range positive(int64_t(1), int64_t(1) << 30);
  const auto notEmpty = [](const std::string &text) {
    return text.empty() ? std::string("is empty; give a value, or leave the option out") : std::string();
  };
  command->add_option("model", o.model, "Folder with config.json and the safetensors files")->required()->type_name("MODEL_DIR");
  command->add_option("--target", o.target, "What the plan runs on: cpu, or sm_90a for H100 and H200. Never guessed")
      ->type_name("cpu|sm_90a");
  command->add_option("--mesh", o.mesh, "Ranks along each axis, as tp=8,dp=2,ep=16,pp=1,node=8; one rank unless given")
      ->type_name("AXES")
      ->check(notEmpty);
  command
      ->add_option(
          "--sequence-parallel", o.sequenceParallel,
          "Do the ranks of a tp group share out the rows of a prefill for residual mixes and norms? By cost unless given")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  command
      ->add_option(
          "--mla", o.mla,
          "What a rank of a tp group has of an MLA layer in a prefill with shared rows: its heads, or its query rows with "
          "all heads and whole weights. By cost unless given")
      ->check(CLI::IsMember({"auto", "heads", "rows"}))
      ->capture_default_str();
  command->add_option("--max-context", o.maxContext, "Positions of one sequence")->check(positive)->capture_default_str();
  command->add_option("--max-batch", o.maxBatch, "Sequences that are held at once")->check(positive)->capture_default_str();
  command
      ->add_option("--cache-tokens", o.cacheTokens,
                   "Positions that the caches hold for all sequences together; max-context x max-batch unless given")
      ->check(positive);
  command->add_option("--prefill-chunk", o.prefillChunk, "Rows of the largest prefill bucket")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--logit-rows", o.logitRows, "Rows of a prefill that can get logits")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--activations", o.activations, "Element type of activations and caches")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  command
      ->add_option("--cpu-level", o.cpuLevels,
                   "Host processors that the plan runs on, as x86-64-v4,x86-64-v3; all known levels unless given")
      ->delimiter(',')
      ->type_name("LEVELS");
  command
      ->add_option("--layers", o.layers,
                   "Only layers A up to but not including B, counted from 0: a slice that takes and returns hidden states")
      ->type_name("A:B")
      ->check(notEmpty);
  command
      ->add_option("--memory-limit", o.memoryLimit,
                   "Refuse a plan that needs more: h100, h200, or bytes such as 24G (powers of 1024)")
      ->check(notEmpty);
  command->add_option("--mla-norm-eps", o.mlaNormEps, "Epsilon of MLA's latent norms, when it differs from the family's");
  command->add_option("--dump-ir", o.dumpDir, "Write the IR after each pass to DIR/NN-pass.mlir")
      ->type_name("DIR")
      ->check(notEmpty);
  CLI::Option *cacheDir =
      command
          ->add_option("--cache-dir", o.cacheDir, "Compiled kernels are kept here for the next compile, by content, up to 1 GiB")
          ->capture_default_str()
          ->type_name("DIR")
          ->check(notEmpty);
  command->add_flag("--no-cache", o.noCache, "Keep no compiled kernels and use none")->excludes(cacheDir);
  command->add_option("-o,--output", o.output, "The plan file")->capture_default_str()->type_name("FILE")->check(notEmpty);
  return {command, [options] {
            options->range = parseLayerRange(options->layers);
            return compile(*options);
          }};
}

} // namespace k31::tool
