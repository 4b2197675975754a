// k31-e2e: what the end-to-end tests need of a plan and k31-run does not offer.
#include "runtime/base/cat.h"
#include "test/e2e/e2e.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

namespace k31::e2e {

Result<std::unique_ptr<Session>> open(const Options &options) {
  K31_ASSIGN(auto session, Session::load(options.plan));
  K31_TRY(session->bind({.weights = options.weights, .poison = true}));
  return session;
}

void Tensors::append(const std::string &name, std::span<const std::byte> bytes, uint64_t row_bytes, bool f32) {
  auto at = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor &t) { return t.name == name; });
  if (at == tensors.end())
    at = tensors.insert(at, {name, {}, row_bytes, f32});
  at->bytes.insert(at->bytes.end(), bytes.begin(), bytes.end());
}

Result<void> Tensors::write(const std::string &path) const {
  std::vector<TensorData> data;
  for (const Tensor &t : tensors)
    data.push_back({t.name, t.f32 ? "F32" : "U8", {t.bytes.size() / t.row_bytes, t.row_bytes / (t.f32 ? 4 : 1)}, t.bytes});
  return write_safetensors(path, data);
}

} // namespace k31::e2e

int main(int argc, char **argv) {
  using namespace k31;
  CLI::App app("k31-e2e: runs plans for the end-to-end tests");
  app.require_subcommand(1);
  e2e::Options options;
  Result<void> (*run)(const e2e::Options &) = nullptr;
  const auto add = [&](const char *name, const char *what, Result<void> (*function)(const e2e::Options &), bool writes = true) {
    CLI::App *command = app.add_subcommand(name, what);
    command->add_option("--plan", options.plan)->required();
    command->add_option("--weights", options.weights)->required();
    if (writes)
      command->add_option("--out", options.out, "Safetensors file to write")->required();
    command->callback([&run, function] { run = function; });
    return command;
  };
  CLI::App *observe = add("observe", "One prompt: outputs of kernels, and its caches afterwards", e2e::observe);
  observe->add_option("--kernels", options.kernels, "Starts of kernel names, separated by commas");
  observe->add_option("--chunk", options.chunk, "Most tokens in one run");
  CLI::App *batching = add("batching", "Logits of one prompt in other chunks, slots and company", e2e::batching);
  CLI::App *sets = add("sets", "Positions that sparse attention reads, equal on the ranks of a tp group", e2e::sets, false);
  sets->add_option("--chunk", options.chunk, "Tokens in one run")->required();
  for (CLI::App *command : {observe, batching, sets})
    command->add_option("--tokens", options.tokens)->delimiter(',')->required();
  add("slice", "Hidden states through a plan of some layers", e2e::slice)->add_option("--inputs", options.inputs)->required();
  add("states", "States that are saved, shared, rolled back and broken", e2e::states, false)
      ->add_option("--broken-id", options.broken_id, "The embedding of this id is NaN: only that is tested");
  add("stages", "Whether pipeline stages work at the same time", e2e::stages, false);
  add("parts", "Parts of states, of several ranks and plans", e2e::parts, false)->add_option("--other", options.others);
  add("select", "Planted keys at the last position of a plan of one layer", e2e::select, false);
  CLI11_PARSE(app, argc, argv);
  if (auto done = run(options); !done) {
    std::fprintf(stderr, "k31-e2e: error: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
