// k31-run logits: the logits of every position, to a safetensors file.
#include "runtime/base/file.h"
#include "runtime/base/safetensors.h"
#include "tools/k31_run/commands.h"
#include "tools/k31_run/ids.h"
#include "tools/k31_run/ranks.h"
#include "tools/k31_run/windows.h"
#include <algorithm>
#include <cstdio>

namespace k31::run {
namespace {

struct Options {
  ModelOptions model;
  TextSource source;
  std::string out;
  uint32_t chunk = 0, window = 0;
};

Result<void> logits(const Options &options) {
  if (ranks().first())
    K31_TRY(check_output(options.out));
  K31_ASSIGN(Model model, load_model(options.model));
  K31_ASSIGN(const std::vector<int32_t> ids, options.source.ids(options.model, model.facts()));
  K31_TRY(bind_model(model, options.model));
  const size_t rows = window_rows(ids.size(), options.window), vocab = model.facts().vocab;
  std::vector<float> values(rows * vocab);
  const Clock clock;
  K31_TRY(run_windows(model, ids, options.window, options.chunk, [&](size_t row, std::span<const float> logits) {
    std::copy(logits.begin(), logits.end(), values.begin() + int64_t(row * vocab));
  }));
  K31_TRY(share_windows(model, rows, options.window, vocab * sizeof(float), std::as_writable_bytes(std::span(values))));
  const double seconds = clock.seconds();
  const TensorData tensor{"logits", "F32", {rows, vocab}, std::as_bytes(std::span(values))};
  if (ranks().first())
    K31_TRY(write_safetensors(options.out, std::span(&tensor, 1)));
  if (wants_summary(options.model))
    std::fprintf(stderr, "load %.2f s, bind %.2f s; logits [%zu, %zu] in %.2f s, %.1f tokens/s, to %s\n", model.load_seconds,
                 model.bind_seconds, rows, vocab, seconds, double(rows) / seconds, options.out.c_str());
  return {};
}

} // namespace

Command add_logits(CLI::App &parent) {
  auto options = std::make_shared<Options>();
  CLI::App *app = parent.add_subcommand("logits", "Write the logits of every position: fp32 [T, vocab], tensor \"logits\"");
  options->model.add_to(*app);
  CLI::App *source = app->add_option_group("text", "What to run");
  add_tokens(*source, options->source.tokens, "Token ids, separated by commas");
  source->add_option("--text-file", options->source.file, "UTF-8 text to encode")->type_name("FILE");
  source->require_option(1);
  app->add_option("--out", options->out, "Safetensors file to write")->required()->type_name("FILE");
  app->add_option("--chunk", options->chunk, "Most tokens of a sequence in one run; 0 takes what the plan's entries hold")
      ->type_name("N")
      ->capture_default_str();
  app->add_option(
         "--window", options->window,
         "Cut the tokens into windows of N targets, each from an empty cache; T is then the number of targets. 0: one sequence")
      ->type_name("N")
      ->capture_default_str();
  app->footer(
      "Example:\n  k31-run logits --plan tiny.k31 --weights models/tiny-k31 --tokens 1114,259,1983 --out logits.safetensors");
  return {app, [options] { return logits(*options); }};
}

} // namespace k31::run
