#include "tools/k31_run/model.h"
#include "runtime/base/cat.h"
#include "runtime/comm/communicator.h"
#include "runtime/plan/mesh.h"
#include "tools/k31_run/ranks.h"
#include "tools/usage.h"
#include <cstdio>
#include <unistd.h>

namespace k31::run {

void ModelOptions::add_to(CLI::App &app) {
  app.add_option("--plan", plan, "Plan file that k31c compile made")->required()->type_name("FILE");
  app.add_option("--weights", weights, "Folder of the checkpoint that the plan was made from")->required()->type_name("DIR");
  usage::number(app.add_option("--threads", threads, "Host threads of each rank; 0 takes all cores"), 0u, 4096u)
      ->capture_default_str();
  app.add_flag("--check-launches", check_launches, "Wait after each launch, so that an error names the one that failed");
  app.add_flag("--verbose", verbose, "Print the summary (times, tokens) on stderr also when that is no terminal");
}

bool on_terminal() { return ranks().first() && isatty(STDERR_FILENO); }

bool wants_summary(const ModelOptions &options) { return ranks().first() && (options.verbose || on_terminal()); }

Result<Model> load_model(const ModelOptions &options) {
  Model model;
  const Clock load;
  K31_ASSIGN(model.session, Session::load(options.plan));
  K31_TRY(ranks().enter(model.session->plan()));
  const uint32_t rank = ranks().world() ? ranks().world()->rank() : 0;
  K31_ASSIGN(engine::SessionExecutor executor, engine::SessionExecutor::make(*model.session, rank));
  model.executor = std::make_unique<engine::SessionExecutor>(std::move(executor));
  model.load_seconds = load.seconds();
  return model;
}

Result<void> bind_model(Model &model, const ModelOptions &options) {
  BindOptions bind{
      .weights = options.weights, .threads = options.threads, .check_launches = options.check_launches, .world = ranks().world()};
  if (on_terminal())
    bind.progress = [last = -1](uint64_t done, uint64_t total) mutable {
      const int percent = total ? int(double(done) / double(total) * 100) : 100;
      if (percent != last)
        std::fprintf(stderr, "\rweights: %3d %% of %.1f MB ", percent, double(total) / 1e6);
      last = percent;
    };
  const Clock clock;
  const auto bound = model.session->bind(bind);
  if (on_terminal())
    std::fprintf(stderr, "\r\033[K");
  if (!bound)
    return tl::unexpected(bound.error());
  model.bind_seconds = clock.seconds();
  return {};
}

bool Model::runs(size_t sequence) const {
  const plan::Mesh &mesh = *session->plan().mesh();
  const uint32_t rank = ranks().world() ? ranks().world()->rank() : 0;
  return sequence % mesh.dp() == coordinate(mesh, plan::MeshAxis::dp, rank);
}

// The first rank of the dp group that runs the sequence.
static uint32_t owner(const plan::Mesh &mesh, size_t sequence) {
  return uint32_t(sequence % mesh.dp()) * stride(mesh, plan::MeshAxis::dp);
}

Result<void> Model::share(size_t sequence, std::span<std::byte> bytes) const {
  const plan::Mesh &mesh = *session->plan().mesh();
  return mesh.dp() > 1 ? session->communicator()->all().broadcast(bytes, owner(mesh, sequence)) : Result<void>();
}

Result<void> Model::share(size_t sequence, std::vector<std::byte> &bytes) const {
  const plan::Mesh &mesh = *session->plan().mesh();
  return mesh.dp() > 1 ? comm::share(session->communicator()->all(), bytes, owner(mesh, sequence)) : Result<void>();
}

Result<text::Tokenizer> open_tokenizer(const ModelOptions &options, const engine::ModelFacts &facts) {
  K31_ASSIGN(text::Tokenizer tokenizer, text::Tokenizer::load(options.weights));
  if (uint32_t(tokenizer.size()) > facts.vocab)
    return fail(Code::invalid_input,
                cat("the tokenizer of ", quote(options.weights), " has ", tokenizer.size(), " ids, and the plan's vocabulary ",
                    facts.vocab, "; compile the plan from this checkpoint"));
  return tokenizer;
}

} // namespace k31::run
