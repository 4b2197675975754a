// What the tools put into the inputs of an entry.
#include "tools/k31_run/entry_inputs.h"
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

namespace k31::run {
namespace {

plan::EntryT entry(const char *name, plan::EntryKind kind, uint32_t rows, uint32_t segments, bool slice) {
  plan::EntryT e;
  e.name = name, e.kind = kind, e.rows = rows, e.segments = segments, e.logit_rows = slice ? 0 : segments;
  const auto add = [&](const char *input, plan::DType type, std::vector<uint64_t> shape) {
    auto binding = std::make_unique<plan::BindingT>();
    binding->name = input, binding->dtype = type, binding->shape = std::move(shape);
    e.inputs.push_back(std::move(binding));
  };
  for (const char *input : {"counts", "segments", "row_segment", "block_table"})
    add(input, plan::DType::i32, {1});
  if (slice)
    add("hidden", plan::DType::f32, {rows, 8}), add("bank", plan::DType::f32, {2, rows, 8});
  else
    add("tokens", plan::DType::i32, {rows}), add("logit_rows", plan::DType::i32, {segments}),
        add("sampling", plan::DType::u8, {segments, 24});
  return e;
}

// 6 blocks of 4 positions, 3 slots, sequences of up to 10 positions.
std::vector<uint8_t> small_plan(bool slice) {
  plan::PlanT p;
  p.key = std::make_unique<plan::KeyT>(), p.mesh = std::make_unique<plan::MeshT>();
  p.model = std::make_unique<plan::ModelT>(), p.state = std::make_unique<plan::StateGroupT>();
  p.model->max_context = 10, p.model->vocab = 50, p.model->family = "test";
  p.state->block_tokens = 4, p.state->blocks = 6, p.state->slots = 3;
  for (const auto &[name, kind, rows, segments] :
       {std::tuple("decode_b1", plan::EntryKind::decode, 1, 1), std::tuple("decode_b3", plan::EntryKind::decode, 3, 3),
        std::tuple("prefill_t8", plan::EntryKind::prefill, 8, 2)})
    p.entries.push_back(std::make_unique<plan::EntryT>(entry(name, kind, uint32_t(rows), uint32_t(segments), slice)));
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(plan::CreatePlan(builder, &p));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<int32_t> ints(const std::vector<NamedInput> &inputs, const std::string &name) {
  for (const NamedInput &input : inputs)
    if (name == input.name) {
      std::vector<int32_t> values(input.bytes.size() / 4);
      memcpy(values.data(), input.bytes.data(), input.bytes.size());
      return values;
    }
  ADD_FAILURE() << "no input " << name;
  return {};
}

using Ints = std::vector<int32_t>;

TEST(EntryInputs, PacksSegmentsInTurn) {
  const auto bytes = small_plan(false);
  auto made = EntryInputs::make(*plan::GetPlan(bytes.data()), 2, 9);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->choose(plan::EntryKind::decode, 2, 2), 1u);
  EXPECT_EQ(made->choose(plan::EntryKind::prefill, 8, 1), 2u);
  const int32_t tokens[] = {11, 12, 13};
  const Part parts[] = {{.sequence = 1, .start = 5, .length = 3, .logits = 1, .tokens = tokens}, {.sequence = 0, .length = 2}};
  const auto &inputs = made->fill(2, parts);
  EXPECT_EQ(ints(inputs, "counts"), (Ints{5, 2, 1, 0}));
  EXPECT_EQ(ints(inputs, "segments"), (Ints{0, 3, 5, 1, 1, 0, 3, 2, 0, -1, 0, 0}));
  EXPECT_EQ(ints(inputs, "row_segment"), (Ints{0, 0, 0, 1, 1, -1, -1, -1}));
  EXPECT_EQ(ints(inputs, "block_table"), (Ints{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(ints(inputs, "logit_rows"), (Ints{2}));
  const Ints ids = ints(inputs, "tokens");
  EXPECT_EQ(Ints(ids.begin(), ids.begin() + 3), (Ints{11, 12, 13}));
  EXPECT_TRUE(std::all_of(ids.begin(), ids.end(), [](int32_t id) { return id >= 0 && id < 50; }));
}

TEST(EntryInputs, RefusesWhatThePlanCannotHold) {
  const auto bytes = small_plan(false);
  const plan::Plan &plan = *plan::GetPlan(bytes.data());
  EXPECT_NE(EntryInputs::make(plan, 1, 11).error().message.find("11 positions of a sequence, and the plan serves 10"),
            std::string::npos);
  EXPECT_NE(EntryInputs::make(plan, 4, 1).error().message.find("4 sequences, and the plan holds 3"), std::string::npos);
  EXPECT_NE(EntryInputs::make(plan, 3, 10).error().message.find("need 9 cache blocks of 4 positions, and the plan has 6"),
            std::string::npos);
  auto made = EntryInputs::make(plan, 3, 8);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->choose(plan::EntryKind::prefill, 9, 1).error().message,
            "no prefill entry holds 9 rows of 1 sequences; the largest one holds 8 of 2");
}

TEST(EntryInputs, SlicesGetTheSameStreamInEveryCapacity) {
  const auto bytes = small_plan(true);
  auto made = EntryInputs::make(*plan::GetPlan(bytes.data()), 1, 8);
  ASSERT_TRUE(made);
  const Part part{.length = 1, .logits = 1};
  const Ints one = ints(made->fill(0, {&part, 1}), "bank");
  EXPECT_EQ(made->live_logit_rows(), 0u); // a slice without the head
  const Ints three = ints(made->fill(1, {&part, 1}), "bank");
  ASSERT_EQ(one.size(), 2u * 8);
  ASSERT_EQ(three.size(), 2u * 3 * 8);
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + 8, three.begin()));
  EXPECT_TRUE(std::equal(one.begin() + 8, one.end(), three.begin() + 3 * 8));
  EXPECT_NE(one[0], one[8]); // sources differ
}

} // namespace
} // namespace k31::run
