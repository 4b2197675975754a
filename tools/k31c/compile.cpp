// k31c compile: a checkpoint to a plan file, with its memory table.
#include "codegen/Nvrtc.h"
#include "codegen/Target.h"
#include "dialects/Attn/Attn.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/schema/plan_generated.h"
#include "tools/k31c/commands.h"
#include "tools/k31c/planning.h"
#include "tools/usage.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <chrono>

namespace k31::tool {
namespace {

int usage(const CompileOptions &o) {
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
  if (o.mla == "rows" && o.sequenceParallel == "off")
    return fail(
        2, "--mla rows: query rows are the shared rows of a prefill, and --sequence-parallel off shares none; leave out one");
  if (!o.layers.empty() && !o.range)
    return fail(2, "--layers " + o.layers + ": expected A:B with 0 <= A < B, layers from A up to but not including B");
  if (!o.memoryLimit.empty() && !parseMemoryLimit(o.memoryLimit))
    return fail(2, "--memory-limit " + o.memoryLimit + ": expected h100, h200 or bytes such as 24G");
  return 0;
}

// Why a plan of these options is refused for its size, or empty. The advice for a smaller cache is for the stage with the
// largest.
std::string tooLarge(Planning &planning, const CompileOptions &o, const plan::Plan &plan, uint64_t limit) {
  MemoryTable table = memoryTable(plan);
  for (uint32_t stage = 1; stage < plan.mesh()->pp(); ++stage)
    table.bytesPerToken = std::max(table.bytesPerToken, memoryTable(plan, stage).bytesPerToken);
  bool cacheFits = false;
  std::string why = overLimit(table, limit, cacheFits);
  if (!why.empty() && (!cacheFits || plan.mesh()->tp() * plan.mesh()->dp() * plan.mesh()->pp() > 1))
    why += meshAdvice(planning, o, plan, limit);
  return why;
}

int compile(const CompileOptions &given) {
  if (int code = usage(given))
    return code;
  if (const auto writable = check_output(given.output); !writable) // now, not when all is done
    return fail(1, writable.error().message);
  const auto begin = std::chrono::steady_clock::now();
  CompileOptions o = given;
  if (o.mesh.empty())
    for (const auto &[option, differs] : {std::pair{"--sequence-parallel", o.sequenceParallel == "on"},
                                          {"--mla", o.mla == "rows"},
                                          {"--overlap", o.overlap == "on"},
                                          {"--moe-exchange", o.moeExchange != "auto"},
                                          {"--transport", o.transport != "library"},
                                          {"--fuse-sums", o.fuseSums == "on"}})
      if (differs)
        std::printf("note: %s has no effect without --mesh: one rank exchanges nothing\n", option);
  Planning planning(o);
  PlanBytes made = planning.makePlan(o);
  if (!made.error.empty())
    return fail(1, made.error);
  const std::optional<uint64_t> limit = o.memoryLimit.empty() ? std::nullopt : parseMemoryLimit(o.memoryLimit);
  if (limit && o.mla == "auto") {
    const plan::Plan &first = *plan::GetPlan(made.bytes.data());
    const uint64_t whole = bytesHeldTwice(first), total = memoryTable(first).total;
    if (whole && total > *limit) {
      std::printf(
          "note: by query rows MLA needs %s bytes of whole weights, and the plan %s of the %s that --memory-limit allows; "
          "planned by heads\n",
          cat(whole).c_str(), cat(total).c_str(), cat(*limit).c_str());
      o.mla = "limit";
      made = planning.makePlan(o);
      if (!made.error.empty())
        return fail(1, made.error);
    }
  }
  const plan::Plan &plan = *plan::GetPlan(made.bytes.data());
  std::fputs(memoryText(plan).c_str(), stdout);
  if (limit)
    if (const std::string why = tooLarge(planning, o, plan, *limit); !why.empty())
      return fail(1, why);
  if (auto written = write_plan(o.output, std::as_bytes(std::span(made.bytes))); !written)
    return fail(1, written.error().message);

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s: %u kernels, %u entries, %s, made in %.1f s\n", o.output.c_str(), plan.kernels()->size(),
              plan.entries()->size(), readableBytes(made.bytes.size() + kPlanTrailerBytes).c_str(), seconds);
  return 0;
}

} // namespace

Command addCompile(CLI::App &app) {
  auto options = std::make_shared<CompileOptions>();
  CompileOptions &o = *options;
  CLI::App *command =
      app.add_subcommand("compile", "Compile a checkpoint to a plan, which holds all machine code and no weights.");
  command->footer("Example:\n  k31c compile models/tiny-k31 --target cpu --max-context 4096 --max-batch 2 -o tiny.k31");
  const auto count = [command](const char *name, int64_t &value, const char *description) {
    return usage::number(command->add_option(name, value, description), int64_t(1), int64_t(1) << 30);
  };
  const auto notEmpty = [](const std::string &text) {
    return text.empty() ? std::string("is empty; give a value, or leave the option out") : std::string();
  };
  command->add_option("model", o.model, "Folder with config.json and the safetensors files")->required()->type_name("MODEL_DIR");
  command->add_option("--target", o.target, "What the plan runs on: cpu, or sm_90a for H100 and H200. Never guessed")
      ->type_name("cpu|sm_90a");
  command->add_option("--mesh", o.mesh, "Ranks along each axis, as tp=8,dp=2,ep=16,pp=1,node=8; one rank unless given")
      ->type_name("AXES")
      ->check(notEmpty);
  usage::choice(command->add_option("--sequence-parallel", o.sequenceParallel,
                                    "Do the ranks of a tp group share out the rows of a prefill for residual mixes and norms? "
                                    "auto: by cost for each bucket"),
                {"auto", "on", "off"})
      ->capture_default_str();
  usage::choice(command->add_option("--mla", o.mla,
                                    "What a rank of a tp group has of an MLA layer in a prefill with shared rows: its heads, or "
                                    "its query rows with all heads and whole weights. auto: by cost"),
                {"auto", "heads", "rows"})
      ->capture_default_str();
  usage::choice(command->add_option("--overlap", o.overlap,
                                    "On a GPU: do collectives run on a stream of their own, beside launches that need nothing of "
                                    "theirs? For meshes over a network; between GPUs that NVLink joins it gains nothing"),
                {"on", "off"})
      ->capture_default_str();
  usage::choice(command->add_option("--moe-exchange", o.moeExchange,
                                    "How tokens reach the ranks of their experts, where a bucket allows it; auto chooses by cost "
                                    "for each bucket, see k31c explain"),
                {"auto", "replicate", "dispatch", "two-level"})
      ->capture_default_str();
  usage::choice(command->add_option("--transport", o.transport,
                                    "Who moves rows between ranks of one host: library (NCCL; shared memory or MPI), peer (a "
                                    "kernel of the plan writes them into memory of its peers), or for each collective the "
                                    "cheaper one (auto)"),
                {"library", "peer", "auto"})
      ->capture_default_str();
  usage::choice(command->add_option("--fuse-sums", o.fuseSums,
                                    "Sums that go by peer: does their kernel go on with the norm, mix or addition that reads "
                                    "them? Where it is possible (on), on a GPU where rows are few (auto), or never (off)"),
                {"auto", "on", "off"})
      ->capture_default_str();
  count("--max-context", o.maxContext, "Positions of one sequence")->capture_default_str();
  count("--max-batch", o.maxBatch, "Sequences that are held at once")->capture_default_str();
  count("--cache-tokens", o.cacheTokens,
        "Positions that the caches hold for all sequences together; max-context x max-batch unless given");
  count("--prefill-chunk", o.prefillChunk, "Rows of the largest prefill bucket")->capture_default_str();
  count("--logit-rows", o.logitRows, "Rows of a prefill that can get logits")->capture_default_str();
  usage::choice(command->add_option("--activations", o.activations,
                                    "Element type of activations, and of caches unless --kv-dtype says another"),
                {"bf16", "fp32"})
      ->capture_default_str();
  usage::choice(command->add_option("--kv-dtype", o.kvDtype,
                                    "Element type of latent rows and index keys: bf16, or 8-bit codes with scales, which take "
                                    "656 bytes for 1152 and 132 for 256; that of the activations unless given"),
                {"bf16", "fp8"});
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
                   "Refuse a plan of which a rank needs more: h100, h200, or bytes such as 24G (powers of 1024)")
      ->type_name("SIZE")
      ->check(notEmpty);
  command->add_option("--mla-norm-eps", o.mlaNormEps, "Epsilon of MLA's latent norms, when it differs from the family's")
      ->type_name("X");
  command->add_option("--dump-ir", o.dumpDir, "Write the IR after each pass to DIR/NN-pass.mlir")
      ->type_name("DIR")
      ->check(notEmpty);
  CLI::Option *cacheDir =
      command->add_option("--cache-dir", o.cacheDir, "Machine code is kept here for the next compile, by content, up to 1 GiB")
          ->capture_default_str()
          ->type_name("DIR")
          ->check(notEmpty);
  command->add_flag("--no-cache", o.noCache, "Keep no machine code and use none that was kept")->excludes(cacheDir);
  command->add_option("-o,--output", o.output, "The plan file")->capture_default_str()->type_name("FILE")->check(notEmpty);
  return {command, [options] {
            options->range = parseLayerRange(options->layers);
            return compile(*options);
          }};
}

} // namespace k31::tool
