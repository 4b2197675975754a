// k31-run generate: text from prompts, several at once if need be.
#include "runtime/base/cat.h"
#include "runtime/engine/engine.h"
#include "runtime/text/chat.h"
#include "tools/k31_run/commands.h"
#include "tools/k31_run/ids.h"
#include "tools/k31_run/model.h"
#include "tools/k31_run/numbers.h"
#include "tools/k31_run/printer.h"
#include "tools/k31_run/ranks.h"
#include "tools/usage.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace k31::run {
namespace {

struct Options {
  ModelOptions model;
  std::vector<std::string> prompts;
  std::vector<int32_t> tokens; // instead of prompts
  std::string tokens_file;     // instead of either
  uint32_t max_tokens = 128;
  engine::Sampling sampling;
  bool chat = false;
  std::string system;
  text::ChatOptions chat_options;
  bool ignore_eos = false;
  bool json = false;
};

struct Sequence {
  engine::SequenceId id = 0;
  std::vector<int32_t> prompt;
  std::optional<Transcript> transcript; // none without a tokenizer
  engine::Output output;
};

struct Timing {
  uint64_t prompt_tokens = 0, drawn = 0;
  double first_seconds = 0, seconds = 0; // to the first token of all; in total
};

// An output on its way from the ranks that drew it: finish, count, ids, and the reason of a failure.
std::vector<std::byte> pack(const engine::Output &output) {
  std::vector<int32_t> numbers = {int32_t(output.finish), output.error ? int32_t(output.error->code) : -1,
                                  int32_t(output.tokens.size())};
  numbers.insert(numbers.end(), output.tokens.begin(), output.tokens.end());
  const auto bytes = std::as_bytes(std::span(numbers));
  std::vector<std::byte> packed(bytes.begin(), bytes.end());
  const std::string reason = output.error ? output.error->message : "";
  const auto text = std::as_bytes(std::span(reason));
  packed.insert(packed.end(), text.begin(), text.end());
  return packed;
}
engine::Output unpack(std::span<const std::byte> packed) {
  engine::Output output;
  int32_t head[3];
  memcpy(head, packed.data(), sizeof head);
  packed = packed.subspan(sizeof head);
  output.finish = engine::Finish(head[0]);
  output.tokens.resize(size_t(head[2]));
  memcpy(output.tokens.data(), packed.data(), output.tokens.size() * sizeof(int32_t));
  packed = packed.subspan(output.tokens.size() * sizeof(int32_t));
  if (head[1] >= 0)
    output.error = Error{Code(head[1]), std::string(reinterpret_cast<const char *>(packed.data()), packed.size())};
  return output;
}

const char *name_of(engine::Finish finish) {
  switch (finish) {
  case engine::Finish::length:
    return "length";
  case engine::Finish::stop:
    return "stop";
  case engine::Finish::context:
    return "context";
  case engine::Finish::failed:
    return "failed";
  }
  return "";
}

// The ids of every prompt.
Result<std::vector<std::vector<int32_t>>> prompt_ids(const Options &options, const text::Tokenizer *tokenizer) {
  if (!options.tokens.empty())
    return std::vector<std::vector<int32_t>>{options.tokens};
  if (!options.tokens_file.empty())
    return read_ids(options.tokens_file);
  std::vector<std::vector<int32_t>> all;
  for (const std::string &prompt : options.prompts) {
    std::vector<text::Message> messages;
    if (!options.system.empty())
      messages.push_back({text::Role::system, options.system, {}});
    messages.push_back({text::Role::user, prompt, {}});
    K31_ASSIGN(std::vector<int32_t> ids,
               options.chat ? text::encode_chat(*tokenizer, messages, options.chat_options) : tokenizer->encode(prompt));
    all.push_back(std::move(ids));
  }
  return all;
}

// The checkpoint's tokenizer. Ids can be run without one.
Result<std::optional<text::Tokenizer>> optional_tokenizer(const Options &options, const engine::ModelFacts &facts) {
  auto tokenizer = open_tokenizer(options.model, facts);
  if (tokenizer)
    return std::move(*tokenizer);
  if (options.prompts.empty() && tokenizer.error().code == Code::not_found)
    return std::nullopt;
  return tl::unexpected(tokenizer.error());
}

void print_json(const Options &options, const Model &model, const std::vector<Sequence> &sequences, const Timing &timing,
                const engine::Counters &counters) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence &s = sequences[i];
    nlohmann::ordered_json one;
    if (!options.prompts.empty())
      one["prompt"] = options.prompts[i];
    one["prompt_tokens"] = s.prompt;
    one["tokens"] = s.output.tokens;
    if (s.transcript && options.chat)
      one["thinking"] = s.transcript->thinking();
    if (s.transcript)
      one[options.chat ? "response" : "text"] = s.transcript->response();
    one["finish"] = name_of(s.output.finish);
    if (s.output.error)
      one["error"] = s.output.error->message;
    list.push_back(std::move(one));
  }
  const nlohmann::ordered_json all = {{"sequences", list},
                                      {"load_seconds", model.load_seconds},
                                      {"bind_seconds", model.bind_seconds},
                                      {"first_token_seconds", timing.first_seconds},
                                      {"seconds", timing.seconds},
                                      {"preemptions", counters.preemptions},
                                      {"non_finite", counters.non_finite},
                                      {"tokens_per_second", timing.seconds > 0 ? double(timing.drawn) / timing.seconds : 0.0}};
  std::printf("%s\n", all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

// What happened to sequences is only there when it did.
void print_summary(const Model &model, const std::vector<Sequence> &sequences, const Timing &timing,
                   const engine::Counters &counters) {
  std::fprintf(stderr,
               "load %.2f s, bind %.2f s; %llu prompt tokens, first token after %.2f s; %llu tokens in %.2f s, %.1f tokens/s",
               model.load_seconds, model.bind_seconds, static_cast<unsigned long long>(timing.prompt_tokens),
               timing.first_seconds, static_cast<unsigned long long>(timing.drawn), timing.seconds,
               timing.seconds > 0 ? double(timing.drawn) / timing.seconds : 0.0);
  const uint64_t full = uint64_t(std::ranges::count(sequences, engine::Finish::context, [](auto &s) { return s.output.finish; }));
  for (const auto &[count, what] : {std::pair<uint64_t, const char *>{full, "ended at the plan's --max-context"},
                                    {counters.preemptions, "preempted for want of cache, and run again"},
                                    {counters.non_finite, "ended by values that are not finite"}})
    if (count)
      std::fprintf(stderr, "; %llu sequence%s %s", static_cast<unsigned long long>(count), count == 1 ? "" : "s", what);
  std::fputc('\n', stderr);
}

Result<void> generate(const Options &options) {
  K31_ASSIGN(Model model, load_model(options.model));
  K31_ASSIGN(const std::optional<text::Tokenizer> tokenizer, optional_tokenizer(options, model.facts()));
  K31_ASSIGN(const std::vector<std::vector<int32_t>> prompts, prompt_ids(options, tokenizer ? &*tokenizer : nullptr));
  engine::Engine engine(*model.executor);
  std::optional<Printer> printer; // none with --json

  const std::string element = !options.chat ? "" : options.chat_options.thinking ? "think" : "response";
  std::vector<Sequence> sequences;
  sequences.reserve(prompts.size()); // the callbacks keep pointers
  Timing timing;
  Clock clock;
  const auto show = [&](size_t i, int32_t id) {
    std::optional<Transcript> &transcript = sequences[i].transcript;
    if (!timing.drawn++)
      timing.first_seconds = clock.seconds();
    const std::string text = transcript ? transcript->push(id) : std::to_string(id) + " ";
    if (printer)
      printer->add(i, text);
  };
  for (size_t i = 0; i < prompts.size(); ++i) {
    timing.prompt_tokens += prompts[i].size();
    Sequence &sequence = sequences.emplace_back(Sequence{0, prompts[i], {}, {}});
    if (tokenizer)
      sequence.transcript.emplace(*tokenizer, element);
    if (!model.runs(i))
      continue;
    auto id = engine.add({.tokens = sequence.prompt,
                          .max_tokens = options.max_tokens,
                          .sampling = options.sampling,
                          .stop = options.ignore_eos ? std::vector<int32_t>() : model.facts().eos,
                          .on_token = [&show, i](int32_t drawn) { show(i, drawn); }});
    if (!id)
      return context("prompt " + std::to_string(i + 1), id.error());
    sequence.id = *id;
  }
  K31_TRY(bind_model(model, options.model));
  if (!options.json)
    printer.emplace(prompts.size(), prompts.size() > 1);
  clock = {};
  std::optional<Error> error;
  const auto end = [&](size_t i, engine::Output output) {
    sequences[i].output = std::move(output);
    const std::string text = sequences[i].transcript ? sequences[i].transcript->finish() : "";
    if (printer) {
      printer->add(i, text);
      printer->finish(i);
    }
    if (sequences[i].output.error && !error)
      error =
          Error{sequences[i].output.error->code, "prompt " + std::to_string(i + 1) + ": " + sequences[i].output.error->message};
  };
  for (bool more = true; more;) {
    const auto stepped = engine.step();
    if (!stepped && ranks().several())
      return tl::unexpected(stepped.error()); // other ranks run on, out of step
    if (!stepped)
      error = stepped.error();
    more = stepped ? stepped->ran : !engine.idle();
    for (size_t i = 0; i < sequences.size(); ++i)
      if (auto output = model.runs(i) ? engine.take(sequences[i].id) : std::nullopt)
        end(i, std::move(*output));
  }
  for (size_t i = 0; i < sequences.size(); ++i) { // of other dp groups
    std::vector<std::byte> bytes = model.runs(i) ? pack(sequences[i].output) : std::vector<std::byte>();
    K31_TRY(model.share(i, bytes));
    if (model.runs(i))
      continue;
    engine::Output output = unpack(bytes);
    for (const int32_t id : output.tokens)
      show(i, id);
    end(i, std::move(output));
  }
  timing.seconds = clock.seconds();
  if (options.json)
    print_json(options, model, sequences, timing, engine.counters());
  if (wants_summary(options.model))
    print_summary(model, sequences, timing, engine.counters());
  if (error)
    return tl::unexpected(*error);
  return {};
}

} // namespace

Command add_generate(CLI::App &parent) {
  auto options = std::make_shared<Options>();
  CLI::App *app = parent.add_subcommand("generate", "Continue prompts and print the text as it is made");
  options->model.add_to(*app);
  CLI::App *source = app->add_option_group("prompt", "What to continue");
  CLI::Option *prompt = source->add_option("--prompt", options->prompts, "Text; repeat it to run several at once")
                            ->type_name("TEXT")
                            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                            ->expected(1)
                            ->allow_extra_args(false);
  add_tokens(*source, options->tokens, "Token ids, separated by commas; the checkpoint then needs no tokenizer");
  source->add_option("--tokens-file", options->tokens_file, "File of token ids separated by commas, one sequence a line")
      ->type_name("FILE");
  source->require_option(1);
  usage::number(app->add_option("--max-tokens", options->max_tokens, "Most tokens to draw for a prompt"), 1u, 1u << 30)
      ->capture_default_str();
  app->add_option("--temperature", options->sampling.temperature,
                  "0 takes the most likely token; 1 is what the released model was made for, with --top-p 0.95")
      ->check([](const std::string &text) { return text.starts_with("-") ? "expected 0 or more, found " + text : std::string(); })
      ->type_name("T")
      ->capture_default_str();
  app->add_option("--top-p", options->sampling.top_p, "Draw from the most likely tokens that together reach this probability")
      ->check(CLI::Range(1e-6, 1.0).description(""))
      ->type_name("P")
      ->capture_default_str();
  app->add_option("--seed", options->sampling.seed, "The same seed gives the same text")
      ->check(check_seed)
      ->type_name("S")
      ->capture_default_str();
  CLI::Option *chat =
      app->add_flag("--chat", options->chat, "The prompt is a user's message; thinking and response are shown apart")
          ->needs(prompt);
  app->add_option("--system", options->system, "System message of the chat")->needs(chat)->type_name("TEXT");
  app->add_flag_callback(
         "--no-thinking", [options] { options->chat_options.thinking = false; }, "Chat without thinking")
      ->needs(chat);
  usage::choice(
      app->add_option("--effort", options->chat_options.effort, "How much to think; the prompt says nothing of it unless given"),
      {"low", "high", "max"})
      ->needs(chat);
  app->add_flag("--ignore-eos", options->ignore_eos, "Go on after an id that ends the text");
  app->add_flag("--json", options->json, "Print one JSON document with ids, text and times at the end instead");
  app->footer(
      "Example:\n  k31-run generate --plan tiny.k31 --weights models/tiny-k31 --prompt \"In the beginning\" --max-tokens 40");
  return {app, [options] { return generate(*options); }};
}

} // namespace k31::run
