// Slices of a model, run one after the other, are the whole model: the residual stream between them is all that they share.
#include "runtime/schema/plan_generated.h"
#include "runtime/session.h"
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

namespace k31 {
namespace {

using Bytes = std::vector<std::byte>;

class Slices : public ::testing::Test {
protected:
  static constexpr int kLayers = 9, kVocab = 2304, kRows = 8;

  std::string folder = ::testing::TempDir() + "k31_slices";

  // A session of layers [begin, end), bound to the test model.
  std::unique_ptr<Session> open(int begin, int end) {
    std::filesystem::create_directories(folder);
    const std::string path = folder + "/" + std::to_string(begin) + "_" + std::to_string(end) + ".k31";
    std::string command = K31C " compile " K31_MODELS "/tiny-k31 --target cpu --activations fp32 --max-context 256 --max-batch 2 "
                               "--prefill-chunk 8 --logit-rows 8 --cpu-level x86-64-v3 --cache-dir " +
                          folder + "/kernels -o " + path + " > " + folder + "/log";
    if (begin != 0 || end != kLayers)
      command += " --layers " + std::to_string(begin) + ":" + std::to_string(end);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    auto session = Session::load(path);
    EXPECT_TRUE(session) << session.error().message;
    if (!session)
      return nullptr;
    auto bound = (*session)->bind({.weights = K31_MODELS "/tiny-k31", .threads = 2, .poison = true});
    EXPECT_TRUE(bound) << bound.error().message;
    return std::move(*session);
  }

  static uint32_t entry(const Session &session, const char *name) {
    for (uint32_t i = 0; i < session.plan().entries()->size(); ++i)
      if (session.plan().entries()->Get(i)->name()->string_view() == name)
        return i;
    ADD_FAILURE() << "no entry " << name;
    return 0;
  }

  // Bytes of a named output of an entry; 0 when it has none of this name.
  static size_t size_of(const Session &session, uint32_t entry, const std::string &name) {
    for (const plan::Binding *binding : *session.plan().entries()->Get(entry)->outputs())
      if (binding->name()->string_view() == name) {
        size_t bytes = 4;
        for (uint64_t extent : *binding->shape())
          bytes *= extent;
        return bytes;
      }
    return 0;
  }

  // Runs tokens [start, start + count) of one sequence through the slices; returns the logits of its rows.
  static Bytes run(const std::vector<std::unique_ptr<Session>> &slices, const char *name, std::vector<int32_t> tokens,
                   int start) {
    const int count = int(tokens.size()), capacity = count == 1 ? 1 : kRows;
    const int32_t counts[4] = {count, 1, count, 0}, segment[6] = {0, count, start, start ? 1 : -1, 1, 0}, table[1] = {1};
    std::vector<int32_t> rows(size_t(capacity), -1), logit_rows;
    for (int i = 0; i < count; ++i)
      rows[size_t(i)] = 0, logit_rows.push_back(i);
    Bytes sampling(size_t(count) * 24);
    const auto bytes = [](const auto &values) { return std::as_bytes(std::span(values)); };
    std::map<std::string, Bytes> stream;
    for (const auto &session : slices) {
      const uint32_t number = entry(*session, name);
      std::vector<NamedInput> inputs = {
          {"counts", bytes(counts)}, {"segments", bytes(segment)}, {"row_segment", bytes(rows)}, {"block_table", bytes(table)}};
      if (session == slices.front())
        inputs.push_back({"tokens", bytes(tokens)});
      if (session == slices.back())
        inputs.push_back({"logit_rows", bytes(logit_rows)}), inputs.push_back({"sampling", sampling});
      for (const auto &[input, values] : stream)
        inputs.push_back({input.c_str(), values});
      std::map<std::string, Bytes> next;
      std::vector<NamedOutput> outputs;
      for (const char *output : {"hidden", "bank", "logits"})
        if (const size_t size = size_of(*session, number, output)) {
          next[output].resize(size);
          outputs.push_back({output, next[output]});
        }
      const auto ran = session->run(number, inputs, outputs);
      EXPECT_TRUE(ran) << ran.error().message;
      stream = std::move(next);
    }
    Bytes logits = stream["logits"];
    logits.resize(size_t(count) * kVocab * 4);
    return logits;
  }

  static std::vector<int32_t> some_tokens(int count) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < count; ++i)
      tokens.push_back((i * 977 + 13) % kVocab);
    return tokens;
  }
};

TEST_F(Slices, RunInTurnEqualTheWholeModel) {
  std::vector<std::unique_ptr<Session>> whole, two, four;
  whole.push_back(open(0, 9));
  // Blocks of residuals have 4 layers: the cuts are at a block's start, behind it, and around a slice that starts no block.
  two.push_back(open(0, 4)), two.push_back(open(4, 9));
  four.push_back(open(0, 2)), four.push_back(open(2, 5)), four.push_back(open(5, 7)), four.push_back(open(7, 9));
  const plan::Entry &middle = *four[2]->plan().entries()->Get(0);
  for (const auto *bindings : {middle.inputs(), middle.outputs()})
    for (const plan::Binding *binding : *bindings) {
      EXPECT_NE(binding->name()->str(), "tokens");
      EXPECT_NE(binding->name()->str(), "logits");
      if (binding->name()->string_view() == "bank")
        EXPECT_EQ(binding->shape()->Get(0), 2u);
    }

  const auto tokens = some_tokens(kRows);
  const Bytes expected = run(whole, "prefill_t8", tokens, 0);
  EXPECT_EQ(std::memcmp(run(two, "prefill_t8", tokens, 0).data(), expected.data(), expected.size()), 0);
  EXPECT_EQ(std::memcmp(run(four, "prefill_t8", tokens, 0).data(), expected.data(), expected.size()), 0);
  float first = 0, last = 0;
  std::memcpy(&first, expected.data(), 4), std::memcpy(&last, expected.data() + expected.size() - 4, 4);
  EXPECT_TRUE(first != last && first == first && last == last); // not zeros, not poison

  // Each slice keeps the caches of its own layers.
  const Bytes next = run(whole, "decode_b1", {7}, kRows);
  EXPECT_EQ(std::memcmp(run(two, "decode_b1", {7}, kRows).data(), next.data(), next.size()), 0);
  EXPECT_EQ(std::memcmp(run(four, "decode_b1", {7}, kRows).data(), next.data(), next.size()), 0);
  EXPECT_NE(std::memcmp(run(two, "decode_b1", {7}, 0).data(), next.data(), next.size()), 0); // the state does matter
}

TEST_F(Slices, LoadTheirOwnWeightsOnly) {
  const auto arena_bytes = [](const Session &session) {
    for (const plan::Arena *arena : *session.plan().arenas())
      if (arena->kind() == plan::ArenaKind::weights)
        return arena->bytes();
    return uint64_t(0);
  };
  const auto whole = open(0, 9), first = open(0, 4), second = open(4, 9);
  // Nothing is in both; alignment may add a little.
  EXPECT_NEAR(double(arena_bytes(*first) + arena_bytes(*second)), double(arena_bytes(*whole)), 64 * 1024);
  EXPECT_LT(arena_bytes(*first), arena_bytes(*whole) * 6 / 10);
  for (const plan::WeightStack *stack : *second->plan().weights())
    for (uint32_t member : *stack->members())
      if (stack->pattern()->string_view().find("experts.{}") == std::string_view::npos)
        EXPECT_GE(member, 4u) << stack->pattern()->str();
  for (const plan::StateMember *member : *second->plan().state()->members())
    EXPECT_GE(member->layer(), 4u);
}

} // namespace
} // namespace k31
