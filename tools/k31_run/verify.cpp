// k31-run verify: two plans on the same input, operation by operation; or one plan, and what its launches write.
#include "runtime/base/cat.h"
#include "runtime/comm/communicator.h"
#include "tools/k31_run/commands.h"
#include "tools/k31_run/entry_inputs.h"
#include "tools/k31_run/ids.h"
#include "tools/k31_run/lockstep.h"
#include "tools/k31_run/model.h"
#include "tools/k31_run/numbers.h"
#include "tools/k31_run/ranks.h"
#include "tools/k31_run/verify_report.h"
#include "tools/k31_run/writes.h"
#include "tools/usage.h"
#include <algorithm>
#include <cstdio>

namespace k31::run {
namespace {

struct Options {
  std::string plan, reference, weights, reference_weights, text;
  std::vector<int32_t> tokens;
  std::optional<double> bound;
  uint32_t chunk = 0, decode = 1;
  int threads = 0;
  bool from_reference = false, all = false, writes = false;
};

std::string mebibytes(uint64_t bytes) { return cat((bytes + (1 << 20) - 1) >> 20, " MiB"); }

// A plan, loaded; text and slices of the model need no engine here.
Result<std::unique_ptr<Session>> open_plan(const std::string &path) {
  K31_ASSIGN(std::unique_ptr<Session> session, Session::load(path));
  for (const plan::Kernel *kernel : *session->plan().kernels())
    if (!kernel->operands())
      return fail(Code::unsupported, cat(quote(path), " is of format ", session->plan().major(), ".", session->plan().minor(),
                                         ", which does not say the types of arguments; compile the plan again"));
  return session;
}

Result<void> comparable(const plan::Plan &a, const plan::Plan &b) {
  const plan::Model &x = *a.model(), &y = *b.model();
  if (x.hidden() != y.hidden() || x.vocab() != y.vocab() || x.layers() != y.layers() || x.layer_begin() != y.layer_begin() ||
      x.layer_end() != y.layer_end())
    return fail(Code::invalid_input,
                cat("the plan is of layers ", x.layer_begin(), ":", x.layer_end(), " of ", x.layers(), ", hidden ", x.hidden(),
                    ", vocabulary ", x.vocab(), ", the reference of layers ", y.layer_begin(), ":", y.layer_end(), " of ",
                    y.layers(), ", hidden ", y.hidden(), ", vocabulary ", y.vocab(), "; give plans of the same layers"));
  // What one rank computes before its sums are added to those of others has no counterpart in another mesh.
  if (a.mesh()->tp() != b.mesh()->tp() || a.mesh()->dp() != b.mesh()->dp() || a.mesh()->ep() != b.mesh()->ep() ||
      a.mesh()->pp() != b.mesh()->pp())
    return fail(Code::invalid_input, "the plan and the reference are for other meshes; give a reference for the plan's mesh");
  return {};
}

// Do the ranks of a tp group share out the rows of a prefill?
bool shares_rows(const plan::Plan &plan) {
  return std::any_of(plan.kernels()->begin(), plan.kernels()->end(),
                     [](const plan::Kernel *kernel) { return kernel->name()->string_view() == "coll.own_rows"; });
}

class Verifier {
public:
  explicit Verifier(const Options &options) : options(options) {}

  Result<void> run() {
    K31_ASSIGN(plan, open_plan(options.plan));
    if (options.writes)
      return run_writes();
    K31_ASSIGN(reference, open_plan(options.reference));
    K31_TRY(comparable(plan->plan(), reference->plan()));
    K31_ASSIGN(const std::vector<int32_t> ids, tokens());
    found.emplace(plan->plan(), reference->plan(), options.bound.value_or(same_types() ? 1e-3 : 0.1), options.from_reference,
                  options.all);
    K31_TRY(ranks().enter(plan->plan()));
    K31_TRY(plan->bind({.weights = options.weights, .threads = options.threads, .world = ranks().world()}));
    K31_TRY(reference->bind({.weights = options.reference_weights.empty() ? options.weights : options.reference_weights,
                             .threads = options.threads,
                             .world = ranks().world()}));
    K31_TRY(run_all(ids));
    return found->print();
  }

private:
  static uint32_t stage(const Session &session) { return session.communicator()->coordinate(plan::MeshAxis::pp); }

  bool same_types() const { return plan->plan().model()->activations() == reference->plan().model()->activations(); }

  Result<std::vector<int32_t>> tokens() const {
    std::vector<int32_t> ids = options.tokens;
    if (!options.text.empty()) {
      K31_ASSIGN(const text::Tokenizer tokenizer, text::Tokenizer::load(options.weights));
      K31_ASSIGN(ids, tokenizer.encode(options.text));
    }
    if (ids.empty()) // enough for one full step of the chunked kernels and a remainder
      for (uint32_t i = 0; i < 24; ++i)
        ids.push_back(int32_t((i * 2654435761u >> 4) % plan->plan().model()->vocab()));
    for (const int32_t id : ids)
      if (id < 0 || uint32_t(id) >= plan->plan().model()->vocab())
        return fail(Code::invalid_input, cat("token id ", id, " is not in the vocabulary of ", plan->plan().model()->vocab()));
    return ids;
  }

  Result<void> run_writes() {
    K31_TRY(ranks().enter(plan->plan()));
    K31_TRY(plan->bind({.weights = options.weights, .threads = options.threads, .world = ranks().world()}));
    K31_ASSIGN(const WritesReport report, check_writes(*plan, stage(*plan)));
    std::printf(
        "%u launches of %u entries, each at its largest shape, wrote nothing but their outputs; %s of arenas compared around "
        "each\n",
        report.launches, report.entries, mebibytes(report.bytes).c_str());
    return {};
  }

  // A rank has the same rows of a prefill in both plans.
  Result<void> same_share(uint32_t my_entry, uint32_t their_entry) const {
    const bool mine = shares_rows(plan->plan()), theirs = shares_rows(reference->plan());
    const uint32_t a = plan->plan().entries()->Get(my_entry)->rows(), b = reference->plan().entries()->Get(their_entry)->rows();
    if (mine == theirs && (!mine || a == b))
      return {};
    const auto shared = [](bool yes, uint32_t rows) { return cat(yes ? "shared out" : "all of them", " in an entry of ", rows); };
    return fail(Code::invalid_input,
                cat("a rank has rows of a prefill ", shared(mine, a), " in the plan, ", shared(theirs, b),
                    " in the reference, so theirs are other rows; compile both with the same --sequence-parallel and "
                    "--prefill-chunk, or give all tokens to --decode"));
  }

  // Prefill in chunks that both plans hold, then the last tokens one by one.
  Result<void> run_all(const std::vector<int32_t> &ids) {
    K31_ASSIGN(EntryInputs mine, EntryInputs::make(plan->plan(), 1, ids.size(), stage(*plan)));
    K31_ASSIGN(EntryInputs theirs, EntryInputs::make(reference->plan(), 1, ids.size(), stage(*reference)));
    const plan::Entry *a = largest(plan->plan(), plan::EntryKind::prefill),
                      *b = largest(reference->plan(), plan::EntryKind::prefill);
    uint32_t chunk = a && b ? std::min(a->rows(), b->rows()) : 0;
    if (options.chunk)
      chunk = std::min(chunk, options.chunk);
    const uint32_t count = uint32_t(ids.size());
    const uint32_t prompt = chunk ? count - std::min(options.decode, count) : 0;
    for (uint32_t done = 0; done < count;) {
      const bool prefill = done < prompt;
      const uint32_t length = prefill ? std::min(chunk, prompt - done) : 1;
      const plan::EntryKind kind = prefill ? plan::EntryKind::prefill : plan::EntryKind::decode;
      const Part part{.sequence = 0, .start = done, .length = length, .logits = length, .tokens = ids.data() + done};
      K31_ASSIGN(const uint32_t my_entry, mine.choose(kind, length, 1));
      K31_ASSIGN(const uint32_t their_entry, theirs.choose(kind, length, 1));
      if (prefill)
        K31_TRY(same_share(my_entry, their_entry));
      const std::string entry =
          cat(plan->plan().entries()->Get(my_entry)->name()->str(), ", positions ", done, " to ", done + length - 1);
      const LockstepOptions lockstep{.from_reference = options.from_reference,
                                     .compare = [&](const Pair &pair) { found->add(pair, entry); }};
      K31_ASSIGN(const LockstepReport ran, run_lockstep(*plan, my_entry, mine.fill(my_entry, {&part, 1}), *reference, their_entry,
                                                        theirs.fill(their_entry, {&part, 1}), lockstep));
      found->add(ran);
      done += length;
    }
    return {};
  }

  const Options &options;
  std::unique_ptr<Session> plan, reference;
  std::optional<VerifyReport> found;
};

} // namespace

Command add_verify(CLI::App &parent) {
  auto options = std::make_shared<Options>();
  Options &o = *options;
  CLI::App *app =
      parent.add_subcommand("verify", "Compare two plans of the same model operation by operation, or look at what one writes");
  app->add_option("--plan", o.plan, "Plan file to check")->required()->type_name("FILE");
  CLI::App *against = app->add_option_group("against", "What to compare with");
  against->add_option("--reference", o.reference, "Plan file that is right, such as one with --activations fp32")
      ->type_name("FILE");
  against->add_flag("--writes", o.writes,
                    "No reference: run every entry at its largest shape and look for bytes that a launch changes outside of its "
                    "outputs. Reads the caches twice a launch; compile with a small --max-context");
  against->require_option(1);
  app->add_option("--weights", o.weights, "Folder of the checkpoint that both plans were made from")
      ->required()
      ->type_name("DIR");
  app->add_option("--reference-weights", o.reference_weights, "Another folder for the reference")->type_name("DIR");
  CLI::App *source = app->add_option_group("input", "What to run; made-up ids unless given");
  add_tokens(*source, o.tokens, "Token ids, separated by commas");
  source->add_option("--text", o.text, "Text to encode")->type_name("TEXT");
  source->require_option(0, 1);
  app->add_option("--decode", o.decode, "Run the last N tokens one by one")->type_name("N")->capture_default_str();
  app->add_option("--chunk", o.chunk, "Most tokens of one prefill run; 0 takes what both plans hold")->type_name("N");
  app->add_option(
         "--bound", o.bound,
         "Largest difference that is right, as a part of the largest magnitude of an output; 0.001 unless given, 0.1 for "
         "plans with other types of activations")
      ->check(check_bound)
      ->type_name("X");
  app->add_flag("--from-reference", o.from_reference,
                "Give every operation the reference's inputs, so that errors do not add up");
  app->add_flag("--all", o.all, "Print the operations with the largest differences as a table");
  usage::number(app->add_option("--threads", o.threads, "Host threads of each plan; 0 takes all cores"), 0u, 4096u)
      ->capture_default_str();
  app->footer("Example:\n  k31c compile models/tiny-k31 --target cpu -o tiny.k31\n"
              "  k31c compile models/tiny-k31 --target cpu --activations fp32 -o tiny-fp32.k31\n"
              "  k31-run verify --plan tiny.k31 --reference tiny-fp32.k31 --weights models/tiny-k31 --all\n"
              "  k31-run verify --plan tiny.k31 --weights models/tiny-k31 --writes");
  return {app, [options] { return Verifier(*options).run(); }};
}

} // namespace k31::run
