// k31-run bench: how long the entries of a plan take, and which operations the time goes to.
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/plan/mesh.h"
#include "runtime/weights/source.h"
#include "tools/k31_run/collectives.h"
#include "tools/k31_run/commands.h"
#include "tools/k31_run/entry_inputs.h"
#include "tools/k31_run/model.h"
#include "tools/k31_run/numbers.h"
#include "tools/k31_run/profile.h"
#include "tools/k31_run/ranks.h"
#include "tools/usage.h"
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace k31::run {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string plan, weights, routing = "uniform";
  std::optional<std::string> trace;
  bool synthetic = false, per_op = false, json = false;
  uint32_t batch = 1, context = 0, steps = 16, prefill = 0;
  uint64_t seed = 1;
  int threads = 0;
  std::optional<uint32_t> rank; // of a mesh, alone
  bool stub_collectives = false;
};

// What was measured of one kind of run.
struct Measured {
  std::string kind, entry;
  uint32_t batch = 0, tokens = 0; // tokens of a run, over all sequences
  uint32_t context = 0;           // positions before it
  std::vector<double> seconds;    // of each run
  Profile profile;
  Collectives collectives;

  double median() const { return run::median(seconds); }
};

class Bench {
public:
  explicit Bench(const Options &options) : options(options) {}

  Result<void> run() {
    if (options.trace && ranks().first())
      K31_TRY(check_output(*options.trace));
    const Clock load;
    K31_ASSIGN(session, Session::load(options.plan));
    K31_TRY(options.rank ? ranks().enter_alone(session->plan(), *options.rank) : ranks().enter(session->plan()));
    const uint32_t rank = ranks().world() ? ranks().world()->rank() : 0;
    stage = coordinate(*session->plan().mesh(), plan::MeshAxis::pp, rank);
    // A prompt is run once for each of the steps, so no position is past the longer of the two.
    const uint64_t positions = uint64_t(options.context) + std::max(options.steps, options.prefill);
    K31_ASSIGN(EntryInputs inputs, EntryInputs::make(session->plan(), options.batch, positions, stage));
    K31_ASSIGN(const uint32_t decode, inputs.choose(plan::EntryKind::decode, options.batch, options.batch));
    const Clock bind;
    BindOptions how{.weights = options.weights, .threads = options.threads, .world = ranks().world()};
    if (options.synthetic)
      how.synthetic = options.seed, how.skewed_routing = options.routing == "skewed";
    K31_TRY(session->bind(how));
    bind_seconds = bind.seconds();
    if (options.context)
      fill_caches();
    K31_TRY(run_decode(inputs, decode));
    if (options.prefill)
      K31_TRY(run_prefill(inputs));
    if (options.trace && ranks().first())
      K31_TRY(write_trace());
    if (options.json)
      std::printf("%s\n", json().dump(2).c_str());
    else
      print();
    return {};
  }

private:
  // Finite contents, as if the context had been there.
  void fill_caches() {
    const plan::Plan &plan = session->plan();
    uint64_t seed = options.seed + 1000;
    for (const plan::StateMember *member : *plan.state()->members()) {
      if (member->stage() != stage)
        continue;
      const bool kda = member->kind() == plan::StateKind::kda; // its state is fp32 whatever activations are
      const std::span<std::byte> arena = session->arena(member->arena());
      if (arena.size() < member->offset() + member->unit_bytes() * member->units())
        continue;
      if (member->codes())
        fill_codes(arena.subspan(member->offset(), member->unit_bytes() * member->units()), *member, ++seed);
      else
        weights::fill_normal(arena.subspan(member->offset(), member->unit_bytes() * member->units()),
                             kda ? plan::DType::f32 : plan.model()->activations(), kda ? 0.1f : 0.5f, ++seed);
    }
  }

  // Codes that are never NaN, scales of 2^-8; the rest of a latent row as bf16.
  void fill_codes(std::span<std::byte> pages, const plan::StateMember &member, uint64_t seed) const {
    const uint32_t tokens = session->plan().state()->block_tokens(), codes = member.codes();
    const uint64_t row = member.unit_bytes() / tokens;
    const bool index = member.kind() == plan::StateKind::index;
    const uint64_t scales = index ? 1 : (codes + 127) / 128;
    const float scale = 1.0f / 256;
    std::vector<std::byte> page(member.unit_bytes());
    weights::fill_normal(page, plan::DType::bf16, 0.5f, seed);
    for (uint32_t t = 0; t < tokens; ++t) {
      std::byte *of_row = page.data() + t * (index ? codes : row),
                *at = index ? page.data() + tokens * codes + t * 4ull : of_row + codes;
      for (uint32_t i = 0; i < codes; ++i)
        of_row[i] &= std::byte(0xfe);
      for (uint64_t s = 0; s < scales; ++s)
        memcpy(at + s * 4, &scale, 4);
    }
    for (uint64_t at = 0; at < pages.size(); at += page.size())
      std::copy(page.begin(), page.end(), pages.begin() + int64_t(at));
  }

  // `make` says what run number i is; two runs warm up, and with a profile as many again are observed.
  template <class Make> Result<void> measure(Measured &m, EntryInputs &inputs, uint32_t entry, uint32_t runs, Make &&make) {
    const auto once = [&](uint32_t i) -> Result<double> {
      const std::vector<Part> parts = make(i);
      const auto &given = inputs.fill(entry, parts);
      const Clock clock;
      K31_TRY(session->run(entry, given, {}));
      return clock.seconds();
    };
    m.entry = session->plan().entries()->Get(entry)->name()->str();
    for (uint32_t i = 0; i < 2; ++i)
      K31_TRY(once(0));
    m.collectives.start(*session);
    for (uint32_t i = 0; i < runs; ++i) {
      K31_ASSIGN(const double seconds, once(i));
      m.seconds.push_back(seconds);
    }
    if (options.per_op)
      K31_TRY(m.collectives.stop(*session, entry, runs));
    if (!options.per_op && !options.trace)
      return {};
    m.profile.start(*session, entry, {inputs.live_rows(), inputs.live_segments(), inputs.live_logit_rows(), m.context});
    for (uint32_t i = 0; i < runs; ++i) {
      m.profile.next_run();
      K31_TRY(once(i));
    }
    m.profile.stop();
    return {};
  }

  Result<void> run_decode(EntryInputs &inputs, uint32_t entry) {
    Measured &m = measured.emplace_back();
    m.kind = "decode", m.batch = m.tokens = options.batch, m.context = options.context;
    return measure(m, inputs, entry, options.steps, [&](uint32_t step) {
      std::vector<Part> parts;
      for (uint32_t s = 0; s < options.batch; ++s)
        parts.push_back({.sequence = s, .start = options.context + step, .length = 1, .logits = 1});
      return parts;
    });
  }

  // One prompt of N tokens behind the context, in chunks of the largest entry; its last token gets logits.
  Result<void> run_prefill(EntryInputs &inputs) {
    const plan::Entry *most = largest(session->plan(), plan::EntryKind::prefill);
    if (!most)
      return fail(Code::invalid_input, "the plan has no prefill entry");
    for (uint32_t done = 0; done < options.prefill;) {
      const uint32_t length = std::min(most->rows(), options.prefill - done), start = options.context + done;
      K31_ASSIGN(const uint32_t entry, inputs.choose(plan::EntryKind::prefill, length, 1));
      Measured &m = measured.emplace_back();
      m.kind = "prefill", m.batch = 1, m.tokens = length, m.context = start;
      done += length;
      const uint32_t logits = done == options.prefill;
      K31_TRY(measure(m, inputs, entry, std::min(options.steps, 4u), [&](uint32_t) {
        return std::vector<Part>{{.sequence = 0, .start = start, .length = length, .logits = logits}};
      }));
    }
    return {};
  }

  // What the figures are of, for people, when it is not all that a plan does: one rank alone, one stage of several.
  std::string part() const {
    const plan::Mesh &mesh = *session->plan().mesh();
    return cat(options.rank ? cat(", rank ", *options.rank, " of ", world_size(mesh), " alone, without collectives")
                            : std::string(),
               mesh.pp() > 1 ? cat(", times of stage ", stage, " of ", mesh.pp()) : std::string());
  }

  void print() const {
    std::printf("bind %.2f s%s%s\n", bind_seconds, options.synthetic ? ", synthetic weights" : "", part().c_str());
    for (const Measured &m : measured) {
      const auto [low, high] = std::minmax_element(m.seconds.begin(), m.seconds.end());
      std::printf("%-8s%-16s batch %u, %u tokens after %u: %.3f ms (median of %zu, %.3f to %.3f), %.1f tokens/s\n",
                  m.kind.c_str(), m.entry.c_str(), m.batch, m.tokens, m.context, m.median() * 1e3, m.seconds.size(), *low * 1e3,
                  *high * 1e3, m.tokens / m.median());
      if (options.per_op)
        print_ops(m.profile);
      if (options.per_op && m.collectives.any())
        m.collectives.print();
    }
    if (uint32_t chunks = uint32_t(measured.size()) - 1; chunks > 1) {
      double seconds = 0;
      for (size_t i = 1; i < measured.size(); ++i)
        seconds += measured[i].median();
      std::printf("prefill of %u tokens in %u runs: %.3f ms, %.1f tokens/s\n", options.prefill, chunks, seconds * 1e3,
                  options.prefill / seconds);
    }
  }

  static void print_ops(const Profile &profile) {
    const double all = profile.seconds();
    const std::vector<Profile::Op> ops = profile.ops();
    size_t width = 0; // of the longest name of a kernel; names of merged operations are long, so they come last
    for (const Profile::Op &op : ops)
      width = std::max(width, op.kernel.size());
    std::printf("  %10s %6s %8s %10s %8s  %-*s  %s\n", "ms", "share", "launches", "MB", "GB/s", int(width), "kernel",
                "operation");
    double seconds = 0;
    uint64_t bytes = 0, launches = 0;
    for (const Profile::Op &op : ops) {
      std::printf("  %10.4f %5.1f%% %8llu %10.3f %8.2f  %-*s  %s\n", op.seconds * 1e3, op.seconds / all * 100,
                  static_cast<unsigned long long>(op.launches), double(op.bytes) / 1e6, double(op.bytes) / 1e9 / op.seconds,
                  int(width), op.kernel.c_str(), op.op.c_str());
      seconds += op.seconds, bytes += op.bytes, launches += op.launches;
    }
    std::printf("  %10.4f %5.1f%% %8llu %10.3f %8.2f  all launches\n", seconds * 1e3, 100.0,
                static_cast<unsigned long long>(launches), double(bytes) / 1e6, double(bytes) / 1e9 / seconds);
  }

  Json json() const {
    const plan::Model &model = *session->plan().model();
    Json out{{"plan", options.plan},
             {"target", session->plan().key()->target()->str()},
             {"family", model.family()->str()},
             {"layers", {model.layer_begin(), model.layer_end()}},
             {"synthetic", options.synthetic},
             {"routing", options.synthetic ? Json(options.routing) : Json()}, // a checkpoint's own otherwise
             {"bind_s", bind_seconds},
             {"ranks", world_size(*session->plan().mesh())},
             {"stub_collectives", options.stub_collectives},
             {"stage", stage},
             {"runs", Json::array()}};
    for (const Measured &m : measured) {
      Json run{{"kind", m.kind},
               {"entry", m.entry},
               {"batch", m.batch},
               {"tokens", m.tokens},
               {"context", m.context},
               {"ms", Json::array()},
               {"median_ms", m.median() * 1e3},
               {"tokens_per_s", m.tokens / m.median()}};
      for (const double seconds : m.seconds)
        run["ms"].push_back(seconds * 1e3);
      if (options.per_op) {
        run["ops"] = Json::array();
        for (const Profile::Op &op : m.profile.ops())
          run["ops"].push_back({{"op", op.op},
                                {"kernel", op.kernel},
                                {"launches", op.launches},
                                {"ms", op.seconds * 1e3},
                                {"share", op.seconds / m.profile.seconds()},
                                {"bytes", op.bytes},
                                {"gb_per_s", double(op.bytes) / 1e9 / op.seconds}});
        run["collectives"] = m.collectives.json();
      }
      out["runs"].push_back(run);
    }
    return out;
  }

  Result<void> write_trace() const {
    std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    for (size_t i = 0; i < measured.size(); ++i)
      text += (i ? ",\n" : "") + measured[i].profile.trace_events(cat(measured[i].entry, " after ", measured[i].context), int(i));
    return write_file(*options.trace, text + "\n]}\n");
  }

  const Options &options;
  std::unique_ptr<Session> session;
  double bind_seconds = 0;
  uint32_t stage = 0;            // of the pipeline, that this rank runs
  std::deque<Measured> measured; // decode first
};

} // namespace

Command add_bench(CLI::App &parent) {
  auto options = std::make_shared<Options>();
  Options &o = *options;
  CLI::App *app = parent.add_subcommand("bench", "Time the entries of a plan and their operations");
  app->add_option("--plan", o.plan, "Plan file that k31c compile made")->required()->type_name("FILE");
  CLI::App *weights = app->add_option_group("weights", "Weights to compute with");
  weights->add_option("--weights", o.weights, "Folder of the checkpoint that the plan was made from")->type_name("DIR");
  CLI::Option *synthetic = weights->add_flag("--synthetic-weights", o.synthetic, "Made-up weights: no checkpoint is read");
  weights->require_option(1);
  usage::choice(
      app->add_option("--routing", o.routing, "Of synthetic weights: all experts about as often, or some most of the time"),
      {"uniform", "skewed"})
      ->needs(synthetic)
      ->capture_default_str();
  usage::number(app->add_option("--batch", o.batch, "Sequences that decode at once"), 1u, 1u << 20)->capture_default_str();
  app->add_option("--context", o.context, "Positions that each sequence already has, with made-up caches")
      ->type_name("N")
      ->capture_default_str();
  usage::number(app->add_option("--steps", o.steps, "Decode steps that are timed; a prefill is timed at most four times"), 1u,
                1u << 20)
      ->capture_default_str();
  app->add_option("--prefill", o.prefill, "Time a prompt of N tokens behind the context too")->type_name("N");
  app->add_flag("--per-op", o.per_op,
                "Tables of operations (time, share, bytes that have to move, bandwidth) and of what the collectives of all "
                "ranks move, capacity and live, within hosts and between them; MB are 10^6 bytes, GB 10^9");
  app->add_flag("--json", o.json, "Print one JSON document instead of text");
  app->add_option("--trace", o.trace, "Write the launches of the last run of each kind as a Chrome trace")->type_name("FILE");
  CLI::Option *stub = app->add_flag("--stub-collectives", o.stub_collectives,
                                    "With --rank: one rank of a mesh alone, its collectives do nothing");
  app->add_option("--rank", o.rank, "The rank that runs alone")->needs(stub)->type_name("R");
  app->add_option("--seed", o.seed, "Of made-up weights and caches")->check(check_seed)->type_name("N")->capture_default_str();
  usage::number(app->add_option("--threads", o.threads, "Host threads of each rank; 0 takes all cores"), 0u, 4096u)
      ->capture_default_str();
  app->footer("Example:\n  k31-run bench --plan k31.k31 --synthetic-weights --batch 4 --context 4096 --prefill 512 --per-op");
  return {app, [options]() -> Result<void> {
            if (options->stub_collectives && !options->rank)
              options->rank = 0;
            return Bench(*options).run();
          }};
}

} // namespace k31::run
