// k31-run perplexity: how well the model predicts a text. Mean negative log likelihood (nats per token) over all targets, and its
// exponential.
#include "tools/k31_run/commands.h"
#include "tools/k31_run/windows.h"
#include "tools/usage.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

namespace k31::run {
namespace {

struct Options {
  ModelOptions model;
  TextSource source;
  uint32_t chunk = 0, window = 512;
  bool json = false;
};

// -log softmax(logits)[target], in fp64.
double negative_log_likelihood(std::span<const float> logits, int32_t target) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(double(logit) - top);
  return std::log(sum) + top - double(logits[size_t(target)]);
}

Result<void> perplexity(const Options &options) {
  K31_ASSIGN(Model model, load_model(options.model));
  K31_ASSIGN(const std::vector<int32_t> ids, options.source.ids(options.model, model.facts()));
  K31_TRY(bind_model(model, options.model));
  std::vector<double> losses(window_rows(ids.size(), options.window)); // summed in order of the text, however the windows ran
  const Clock clock;
  K31_TRY(run_windows(model, ids, options.window, options.chunk, [&](size_t row, std::span<const float> logits) {
    losses[row] = negative_log_likelihood(logits, ids[row + 1]);
  }));
  K31_TRY(share_windows(model, losses.size(), options.window, sizeof(double), std::as_writable_bytes(std::span(losses))));
  const double nll = std::accumulate(losses.begin(), losses.end(), 0.0) / double(losses.size());
  if (options.json)
    std::printf("%s\n",
                nlohmann::ordered_json{
                    {"window", options.window}, {"targets", losses.size()}, {"nll", nll}, {"perplexity", std::exp(nll)}}
                    .dump()
                    .c_str());
  else
    std::printf("targets %zu  window %u  nll %.6f  perplexity %.6f\n", losses.size(), options.window, nll, std::exp(nll));
  if (wants_summary(options.model))
    std::fprintf(stderr, "load %.2f s, bind %.2f s; %.2f s, %.1f tokens/s\n", model.load_seconds, model.bind_seconds,
                 clock.seconds(), double(losses.size()) / clock.seconds());
  return {};
}

} // namespace

Command add_perplexity(CLI::App &parent) {
  auto options = std::make_shared<Options>();
  CLI::App *app = parent.add_subcommand("perplexity", "Mean negative log likelihood and perplexity of a text");
  options->model.add_to(*app);
  app->add_option("--text-file", options->source.file, "UTF-8 text")->required()->type_name("FILE");
  usage::number(app->add_option("--window", options->window, "Targets of a window; each window starts from an empty cache"), 1u,
                1u << 30)
      ->capture_default_str();
  app->add_option("--chunk", options->chunk, "Most tokens of a window in one run; 0 takes what the plan's entries hold")
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--json", options->json, "Print one JSON document instead of a line");
  app->footer("Example:\n  k31-run perplexity --plan tiny.k31 --weights models/tiny-k31 --text-file heldout.txt --window 512");
  return {app, [options] { return perplexity(*options); }};
}

} // namespace k31::run
