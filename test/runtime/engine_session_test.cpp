// The engine over a real session: the facts it takes from a plan, and logits through Load, Bind and Run.
#include "runtime/comm/communicator.h"
#include "runtime/comm/local.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/session_executor.h"
#include "test/runtime/plan_builder.h"
#include <gtest/gtest.h>
#include <set>
#include <thread>

namespace k31::engine {
namespace {

Result<ModelFacts> facts(const plan::PlanT &plan) {
  const std::string bytes = test::flatbuffer(plan);
  return facts_of(*plan::GetPlan(bytes.data()));
}

TEST(SessionExecutor, Facts) {
  const plan::PlanT plan = test::sample_plan();
  const auto model = facts(plan);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->vocab, plan.model->vocab);
  EXPECT_EQ(model->max_context, plan.model->max_context);
  EXPECT_EQ(model->blocks, plan.state->blocks);
  EXPECT_EQ(model->slots, plan.state->slots);
  EXPECT_EQ(model->table_blocks, (plan.model->max_context + plan.state->block_tokens - 1) / plan.state->block_tokens);
  ASSERT_EQ(model->entries.size(), plan.entries.size());
  EXPECT_EQ(model->entries[0].name, plan.entries[0]->name);
  EXPECT_EQ(model->entries[0].rows, 4u);
  EXPECT_EQ(model->entries[0].segments, 2u);
  EXPECT_EQ(model->entries[0].logit_rows, 2u);
  EXPECT_EQ(model->entries[0].decode, plan.entries[0]->kind == plan::EntryKind::decode);
}

// The element type of a cache is that of the operands which are its memory; what nobody names is not looked at.
TEST(SessionExecutor, LayoutOfTheStates) {
  plan::PlanT plan = test::sample_plan();
  const auto layout = [&] {
    const std::string bytes = test::flatbuffer(plan);
    return layout_of(*plan::GetPlan(bytes.data()));
  };
  const StateLayout found = layout();
  EXPECT_EQ(found.digest, plan.key->digest);
  EXPECT_EQ(found.block_tokens, 256u);
  ASSERT_EQ(found.members.size(), 2u);
  EXPECT_TRUE(found.members[0].kind == StateKind::latent && found.members[0].paged() && found.members[0].unit_bytes == 1024);
  EXPECT_TRUE(found.members[1].kind == StateKind::conv && !found.members[1].paged() && found.members[1].offset == 2048);
  EXPECT_EQ(found.members[0].element, Element::other);
  for (const auto type : {plan::DType::bf16, plan::DType::f32, plan::DType::u8}) {
    plan::LaunchT &first = test::launch(plan, 0);
    first.args[3] = test::slice(test::kCache, 2048, 1536, plan::Access::write);
    plan.kernels[first.kernel]->operands.clear();
    for (int i = 0; i < 4; ++i) {
      plan.kernels[first.kernel]->operands.push_back(std::make_unique<plan::OperandT>());
      plan.kernels[first.kernel]->operands.back()->dtype = i == 3 ? type : plan::DType::i32;
    }
    EXPECT_EQ(layout().members[1].element, type == plan::DType::bf16  ? Element::bf16
                                           : type == plan::DType::f32 ? Element::f32
                                                                      : Element::other);
  }
}

// On a mesh a rank's layout is that of its own part: members of other stages are somewhere in other ranks' arenas.
TEST(SessionExecutor, LayoutOfARanksPart) {
  plan::PlanT plan = test::sample_plan();
  plan.mesh->tp = plan.mesh->pp = 2;
  plan.state->members[1]->stage = 1;
  const std::string bytes = test::flatbuffer(plan);
  const auto layout = [&](uint32_t rank) { return layout_of(*plan::GetPlan(bytes.data()), rank); };
  std::set<std::string> digests;
  for (const uint32_t rank : {0u, 1u, 2u, 3u}) {
    const StateLayout found = layout(rank);
    ASSERT_EQ(found.members.size(), 1u);
    EXPECT_EQ(found.members[0].kind, rank < 2 ? StateKind::latent : StateKind::conv);
    digests.insert(found.digest);
  }
  EXPECT_EQ(digests.size(), 4u); // what one rank saved is for no other
}

// Runs f(executor, rank, communicator) on two ranks that each hold a part of the states of a plan.
template <class F> void on_two_ranks(F &&f) {
  test::TempFolder folder;
  plan::PlanT plan = test::sample_plan();
  plan.mesh->tp = 2;
  plan.state->members[1]->kind = plan::StateKind::kda; // in fp32
  test::add_weights(plan, folder.path());
  test::write(plan, folder.path("plan.k31"));
  const auto shared = comm::LocalMemory::make(2);
  ASSERT_TRUE(shared);
  const auto run = [&](uint32_t rank) -> Result<void> {
    comm::LocalWorld world(**shared, rank);
    K31_ASSIGN(const auto session, Session::load(folder.path("plan.k31")));
    K31_TRY(session->bind({.weights = folder.path(), .threads = 1, .world = &world}));
    K31_ASSIGN(SessionExecutor executor, SessionExecutor::make(*session, rank));
    return f(executor, rank, *session->communicator());
  };
  Result<void> ended[2];
  {
    const std::jthread other([&] { ended[1] = run(1); });
    ended[0] = run(0);
  }
  for (const Result<void> &end : ended)
    ASSERT_TRUE(end) << end.error().message;
}

// What one rank finds in its own part, both know.
TEST(SessionExecutor, RanksAgreeWhetherAStateIsFinite) {
  std::vector<std::string> found[2];
  on_two_ranks([&](SessionExecutor &executor, uint32_t rank, comm::Communicator &) -> Result<void> {
    K31_TRY(executor.state().fill({}, std::vector<int32_t>{0, 1}, {}));
    if (rank == 1)
      K31_TRY(executor.state().fill({}, std::vector<int32_t>{1}, std::byte{0xff}));
    const BlockTable table = {0};
    for (const int32_t slot : {0, 1}) {
      K31_ASSIGN(std::string where, executor.non_finite({table, slot, 3}));
      found[rank].push_back(std::move(where));
    }
    return {};
  });
  EXPECT_EQ(found[0], (std::vector<std::string>{"", "the part of another rank"}));
  EXPECT_EQ(found[1], (std::vector<std::string>{"", "kda of layer 1"}));
}

// The parts of a state are saved and restored together: what one rank refuses, all refuse, and nobody waits for anybody.
TEST(SessionExecutor, RanksRestoreAStateTogetherOrNotAtAll) {
  using Image = std::shared_ptr<const std::vector<std::byte>>;
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9};
  Image parts[2][3]; // by rank and by boundary
  std::vector<std::string> refusals[2];
  on_two_ranks([&](SessionExecutor &executor, uint32_t rank, comm::Communicator &ranks) -> Result<void> {
    const auto saved = [&](uint32_t boundary) -> Result<Image> {
      Engine engine(executor);
      K31_ASSIGN(const SequenceId id, engine.add({.tokens = {tokens.begin(), tokens.begin() + boundary}, .hold = true}));
      K31_TRY(engine.finish());
      K31_ASSIGN(std::vector<std::byte> image, engine.save(id));
      return std::make_shared<const std::vector<std::byte>>(std::move(image));
    };
    for (const uint32_t boundary : {1u, 2u}) {
      K31_ASSIGN(parts[rank][boundary], saved(boundary));
    }
    K31_TRY(ranks.all().all_gather({}, {})); // the other's parts are there
    const auto restore = [&](Image image) -> Result<void> {
      Engine engine(executor);
      const auto id = engine.add({.tokens = tokens, .max_tokens = 2, .state = std::move(image)});
      refusals[rank].push_back(id ? "" : id.error().message);
      K31_TRY(engine.finish());
      if (id)
        if (const auto out = engine.take(*id); out->error || out->tokens.size() != 2)
          return fail(Code::internal, "the restored sequence did not finish");
      return {};
    };
    K31_TRY(restore(parts[rank][2]));
    K31_TRY(restore(parts[0][2]));           // rank 1 gets what rank 0 saved
    K31_TRY(restore(parts[rank][1 + rank])); // of two boundaries
    K31_TRY(restore(parts[rank][1]));
    // A part that is not finite is saved by nobody.
    Engine engine(executor);
    K31_ASSIGN(const SequenceId id, engine.add({.tokens = tokens, .hold = true}));
    K31_TRY(engine.finish());
    if (rank == 1)
      K31_TRY(executor.state().fill({}, std::vector<int32_t>{engine.find(id)->slot}, std::byte{0xff}));
    const auto image = engine.save(id);
    refusals[rank].push_back(image ? "" : image.error().message);
    return {};
  });
  for (const uint32_t rank : {0u, 1u}) {
    ASSERT_EQ(refusals[rank].size(), 5u);
    EXPECT_EQ(refusals[rank][0] + refusals[rank][3], "");
    EXPECT_NE(refusals[rank][1].find(rank ? "it was saved by plan" : "another rank refuses its part"), std::string::npos)
        << refusals[rank][1];
    EXPECT_NE(refusals[rank][2].find("the parts of the ranks are of 1 to 2 positions"), std::string::npos) << refusals[rank][2];
    EXPECT_NE(refusals[rank][4].find(rank ? "kda of layer 1" : "the part of another rank"), std::string::npos)
        << refusals[rank][4];
  }
}

TEST(SessionExecutor, RefusesWhatItCannotServe) {
  plan::PlanT slice = test::sample_plan();
  slice.model->layers = slice.model->layer_end + 1;
  ASSERT_FALSE(facts(slice));
  EXPECT_EQ(facts(slice).error().code, Code::unsupported);
  plan::PlanT empty = test::sample_plan();
  empty.state->blocks = 0;
  EXPECT_FALSE(facts(empty));
}

TEST(SessionExecutor, LogitsOfThePlan) {
  test::TempFolder folder;
  plan::PlanT plan = test::sample_plan();
  test::add_weights(plan, folder.path());
  test::write(plan, folder.path("plan.k31"));
  auto session = Session::load(folder.path("plan.k31"));
  ASSERT_TRUE(session) << session.error().message;
  auto bound = (*session)->bind({.weights = folder.path(), .threads = 2});
  ASSERT_TRUE(bound) << bound.error().message;
  auto executor = SessionExecutor::make(**session);
  ASSERT_TRUE(executor) << executor.error().message;
  Engine engine(*executor);
  const test::SampleWeights w = test::sample_weights();
  int rows = 0;
  for (const std::vector<int32_t> &tokens : {std::vector<int32_t>{3, 1, 4, 1, 5, 9}, {2, 6}, {15}})
    ASSERT_TRUE(engine.add({.tokens = tokens, .on_logits = [&w, &rows, tokens](uint64_t position, std::span<const float> logits) {
                              ++rows;
                              for (size_t i = 0; i < 16; ++i)
                                EXPECT_EQ(logits[i], 2 * (w.table[size_t(tokens[position]) * 16 + i] + w.bias3[i] + w.bias5[i]));
                            }}));
  auto done = engine.finish();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(rows, 9);
}

} // namespace
} // namespace k31::engine
