// Load, Bind and Run of a whole small plan.
#include "runtime/arena_access.h"
#include "runtime/session.h"
#include "test/runtime/plan_builder.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

namespace k31::test {
namespace {

struct PlanSession : ::testing::Test {
  TempFolder folder;
  plan::PlanT plan = sample_plan();

  Result<std::unique_ptr<Session>> load() {
    write(plan, folder.path("plan.k31"));
    return Session::load(folder.path("plan.k31"));
  }
  // Loads and binds; the error of whichever failed.
  Result<std::unique_ptr<Session>> bound(int threads = 2, bool poison = false) {
    K31_ASSIGN(auto session, load());
    BindOptions options;
    options.weights = folder.path(), options.threads = threads, options.poison = poison;
    K31_TRY(session->bind(options));
    return session;
  }
  std::string refusal(int threads = 2) {
    auto session = bound(threads);
    return session ? std::string("(accepted)") : session.error().message;
  }
};

template <class T> std::span<const std::byte> in(const std::vector<T> &v) { return std::as_bytes(std::span(v)); }
template <class T> std::span<std::byte> out(std::vector<T> &v) { return std::as_writable_bytes(std::span(v)); }

std::vector<float> expected_logits(const std::vector<int32_t> &tokens, const std::vector<int32_t> &rows) {
  const SampleWeights w = sample_weights();
  std::vector<float> logits;
  for (int32_t row : rows)
    for (int i = 0; i < 16; ++i)
      logits.push_back(2 * (w.table[tokens[row] * 16 + i] + w.bias3[i] + w.bias5[i]));
  return logits;
}

TEST_F(PlanSession, RunsTheSamplePlan) {
  add_weights(plan, folder.path());
  for (int threads : {1, 2, 5}) {
    auto session = bound(threads, true);
    ASSERT_TRUE(session) << session.error().message;
    for (int step = 0; step < 20; ++step) {
      const std::vector<int32_t> tokens = {step % 16, (step * 7) % 16, 3, 15}, counts = {4, 2, 2, 0},
                                 rows = {step % 4, 3 - step % 4};
      std::vector<float> logits(32, NAN);
      const NamedInput inputs[] = {{"tokens", in(tokens)}, {"counts", in(counts)}, {"logit_rows", in(rows)}};
      const NamedOutput outputs[] = {{"logits", out(logits)}};
      auto result = (*session)->run(0, inputs, outputs);
      ASSERT_TRUE(result) << result.error().message;
      ASSERT_EQ(logits, expected_logits(tokens, rows));
    }
  }
}

TEST_F(PlanSession, ObserverSeesEachLaunchAfterItRan) {
  add_weights(plan, folder.path());
  auto session = bound();
  ASSERT_TRUE(session) << session.error().message;
  const std::vector<int32_t> tokens = {9, 2, 0, 7}, counts = {4, 2, 2, 0}, rows = {0, 3};
  std::vector<float> logits(32, NAN), seen; // seen: the last launch's output of the logits' size
  const NamedInput inputs[] = {{"tokens", in(tokens)}, {"counts", in(counts)}, {"logit_rows", in(rows)}};
  const NamedOutput outputs[] = {{"logits", out(logits)}};
  size_t launches = 0;
  (*session)->observe([&](const plan::Launch &launch, std::span<const std::span<const std::byte>> args) {
    ++launches;
    ASSERT_EQ(args.size(), launch.args()->size());
    for (uint32_t i = 0; i < args.size(); ++i) {
      ASSERT_EQ(args[i].size(), launch.args()->Get(i)->bytes());
      ASSERT_EQ(args[i].data(), (*session)->arena(launch.args()->Get(i)->arena()).data() + launch.args()->Get(i)->offset());
      if (launch.args()->Get(i)->access() == plan::Access::write && args[i].size() == logits.size() * sizeof(float))
        seen.resize(logits.size()), memcpy(seen.data(), args[i].data(), args[i].size());
    }
  });
  ASSERT_TRUE((*session)->run(0, inputs, outputs));
  size_t expected = 0;
  for (const plan::CommandUnion &command : plan.entries[0]->commands)
    expected += command.type == plan::Command::Launch;
  ASSERT_GT(expected, 0u);
  EXPECT_EQ(launches, expected);
  EXPECT_EQ(logits, expected_logits(tokens, rows));
  EXPECT_EQ(seen, logits);
  (*session)->observe({});
  ASSERT_TRUE((*session)->run(0, inputs, outputs));
  EXPECT_EQ(launches, expected);
}

TEST_F(PlanSession, ShortInputsAndOutputsCopyWhatIsLive) {
  add_weights(plan, folder.path());
  auto session = bound();
  ASSERT_TRUE(session) << session.error().message;
  const std::vector<int32_t> tokens = {9}, counts = {1, 1, 1, 0}, rows = {0, 0};
  std::vector<float> logits(16, NAN);
  const NamedInput inputs[] = {{"tokens", in(tokens)}, {"counts", in(counts)}, {"logit_rows", in(rows)}};
  const NamedOutput outputs[] = {{"logits", out(logits)}};
  ASSERT_TRUE((*session)->run(0, inputs, outputs));
  EXPECT_EQ(logits, expected_logits(tokens, {0}));
}

TEST_F(PlanSession, PoisonFillsAllButTheWeights) {
  add_weights(plan, folder.path());
  auto session = bound(2, true);
  ASSERT_TRUE(session) << session.error().message;
  for (uint32_t arena : {kIo, kActivations, kCache})
    for (std::byte b : (*session)->arena(arena))
      ASSERT_EQ(b, std::byte{0xff}) << "arena " << arena;
  EXPECT_EQ(0, memcmp((*session)->arena(kWeights).data(), sample_weights().table.data(), 1024));
  EXPECT_TRUE((*session)->arena(4).empty());
  auto clean = bound(2, false);
  for (std::byte b : (*clean)->arena(kIo))
    ASSERT_EQ(b, std::byte{0});
}

TEST_F(PlanSession, MemoryOfTheArenas) {
  auto session = load();
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->memory(), nullptr);
  ASSERT_TRUE((*session)->bind({}));
  ArenaAccess &memory = *(*session)->memory();
  std::vector<float> values = {1, 2, 3}, back(3);
  ASSERT_TRUE(memory.write(kCache, 4096 - 12, in(values)));
  ASSERT_TRUE(memory.copy(kCache, 4096 - 12, 100, 12));
  ASSERT_TRUE(memory.read(kCache, 100, out(back)));
  EXPECT_EQ(back, values);
  EXPECT_EQ(0, memcmp((*session)->arena(kCache).data() + 100, values.data(), 12));
  ASSERT_TRUE(memory.fill(kCache, 104, 4, std::byte{0xff}));
  ASSERT_TRUE(memory.read(kCache, 100, out(back)));
  EXPECT_TRUE(back[0] == 1 && std::isnan(back[1]) && back[2] == 3);
  EXPECT_EQ(memory.write(kCache, 4096 - 11, in(values)).error().message, "bytes 4085 to 4085 + 12 of arena 3, which has 4096");
  EXPECT_FALSE(memory.read(kCache, UINT64_MAX, out(back)));
  EXPECT_FALSE(memory.copy(kCache, 0, 4090, 12));
  EXPECT_FALSE(memory.fill(7, 0, 1, {}));
}

TEST_F(PlanSession, ProgressEndsAtTheTotal) {
  add_weights(plan, folder.path());
  auto session = load();
  ASSERT_TRUE(session);
  uint64_t last = 0, total = 0;
  BindOptions options;
  options.weights = folder.path();
  options.progress = [&](uint64_t d, uint64_t t) {
    EXPECT_GE(d, last);
    last = d, total = t;
  };
  ASSERT_TRUE((*session)->bind(options));
  EXPECT_EQ(last, 1024u + 128u);
  EXPECT_EQ(total, last);
}

TEST_F(PlanSession, RefusesWrongRequests) {
  auto session = load();
  ASSERT_TRUE(session);
  EXPECT_TRUE((*session)->arena(0).empty());
  EXPECT_NE((*session)->run(0, {}, {}).error().message.find("not bound"), std::string::npos);
  ASSERT_TRUE((*session)->bind({}));
  EXPECT_NE((*session)->bind({}).error().message.find("bound already"), std::string::npos);
  EXPECT_EQ((*session)->run(1, {}, {}).error().message, "entry 1, the plan has 1");

  std::vector<int32_t> five(5), one(1);
  std::vector<float> many(33);
  const NamedInput unknown[] = {{"token", in(one)}}, large[] = {{"tokens", in(one)}, {"tokens", in(five)}};
  const NamedOutput unknown_output[] = {{"logit", out(many)}}, large_output[] = {{"logits", out(many)}};
  EXPECT_NE((*session)->run(0, unknown, {}).error().message.find("no input 'token', it has: tokens, counts"), std::string::npos);
  EXPECT_EQ((*session)->run(0, large, {}).error().message, "input 'tokens' has 20 bytes, the entry holds at most 16");
  EXPECT_NE((*session)->run(0, {}, unknown_output).error().message.find("no output 'logit'"), std::string::npos);
  EXPECT_EQ((*session)->run(0, {}, large_output).error().message, "output 'logits' has 132 bytes, the entry holds at most 128");
}

TEST_F(PlanSession, ObserversSeeArgumentsAroundEveryLaunch) {
  add_weights(plan, folder.path());
  auto session = bound();
  ASSERT_TRUE(session);
  std::vector<std::string> seen;
  float first = 0;
  (*session)->observe(
      [&](const plan::Launch &launch, std::span<const std::span<const std::byte>> args) {
        seen.push_back("after " + launch.label()->str());
        EXPECT_EQ(args.size(), launch.args()->size());
        if (seen.size() == 2)
          memcpy(&first, args[3].data(), 4);
      },
      [&](const plan::Launch &launch, std::span<const std::span<const std::byte>> args) {
        seen.push_back("before " + launch.label()->str());
        for (size_t i = 0; i < args.size(); ++i)
          EXPECT_EQ(args[i].size(), launch.args()->Get(uint32_t(i))->bytes());
      });
  const std::vector<int32_t> tokens = {3, 1, 2, 3}, counts = {4, 2, 2, 0}, rows = {0, 1};
  const NamedInput inputs[] = {{"tokens", in(tokens)}, {"counts", in(counts)}, {"logit_rows", in(rows)}};
  ASSERT_TRUE((*session)->run(0, inputs, {}));
  EXPECT_EQ(seen,
            (std::vector<std::string>{"before launch of kernel 0", "after launch of kernel 0", "before launch of kernel 1",
                                      "after launch of kernel 1", "before launch of kernel 2", "after launch of kernel 2"}));
  EXPECT_EQ(first, sample_weights().table[3 * 16]); // what the gather has written
  (*session)->observe({});
  ASSERT_TRUE((*session)->run(0, inputs, {}));
  EXPECT_EQ(seen.size(), 6u);
}

TEST_F(PlanSession, SyntheticWeightsNeedNoCheckpoint) {
  add_weights(plan, folder.path());
  std::vector<std::vector<std::byte>> found;
  for (const auto &[threads, seed] : {std::pair(1, 1), std::pair(3, 1), std::pair(2, 2)}) {
    auto session = load();
    ASSERT_TRUE(session);
    BindOptions options;
    options.weights = "/nowhere", options.threads = threads, options.synthetic = seed;
    ASSERT_TRUE((*session)->bind(options));
    const auto arena = (*session)->arena(kWeights);
    found.emplace_back(arena.begin(), arena.end());
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 256; ++i) { // table.weight, a matrix
      float value;
      memcpy(&value, arena.data() + i * 4, 4);
      sum += value, squares += value * value;
    }
    EXPECT_NEAR(sum / 256, 0, 0.006);
    EXPECT_NEAR(std::sqrt(squares / 256), 0.02, 0.004);
  }
  EXPECT_EQ(found[0], found[1]); // whatever the number of threads
  EXPECT_NE(found[0], found[2]);
}

TEST_F(PlanSession, TakesTheFirstImageThatFits) {
  add_weights(plan, folder.path());
  auto demanding = std::make_unique<plan::ImageT>();
  demanding->target = "future", demanding->features = {"avx9000"}, demanding->code = {1, 2, 3};
  plan.images.push_back(std::move(demanding));
  for (auto &kernel : plan.kernels)
    kernel->images = {1, 0};
  auto session = bound();
  ASSERT_TRUE(session) << session.error().message;
}

TEST_F(PlanSession, NamesMissingFeatures) {
  plan.images[0]->features = {"sse2", "avx9000", "quantum"};
  EXPECT_EQ(refusal(), "no image of kernel 'test_gather' fits this processor: 'x86-64-v2' needs avx9000, quantum; compile the "
                       "plan for this machine");
}

TEST_F(PlanSession, RefusesWhatItCannotRun) {
  plan.key->target = "riscv";
  EXPECT_NE(refusal().find("target 'riscv', this runtime runs targets 'cpu' and 'sm_90a'"), std::string::npos) << refusal();
  plan.key->target = "cpu", plan.mesh->tp = 2;
  EXPECT_NE(refusal().find("the plan is for 2 ranks (tp=2,dp=1,pp=1), but 1 process was started; start 2, or compile"),
            std::string::npos)
      << refusal();
}

TEST_F(PlanSession, RefusesBrokenCode) {
  plan.kernels[1]->symbol = "test_missing";
  EXPECT_NE(refusal().find("kernel 'test_add': the image has no symbol 'test_missing'"), std::string::npos) << refusal();
  plan.images[0]->code.resize(100);
  EXPECT_NE(refusal().find("image 0: the plan's kernels cannot be loaded"), std::string::npos) << refusal();
}

TEST_F(PlanSession, RefusesCollectivesThatNeedAnotherRank) {
  auto &collective = *plan.entries[0]->commands[5].AsCollective();
  collective.op = plan::CollectiveOp::send, collective.axis = plan::MeshAxis::pp, collective.peer = 1;
  EXPECT_NE(refusal().find("send to rank 1 of axis pp"), std::string::npos) << refusal();
}

TEST_F(PlanSession, RefusesMoreMemoryThanTheMachineHas) {
  plan.arenas[kCache]->bytes = uint64_t(1) << 46;
  EXPECT_NE(refusal().find("bytes of memory, this machine has"), std::string::npos) << refusal();
}

TEST_F(PlanSession, RefusesAMissingFile) {
  auto session = Session::load(folder.path("absent.k31"));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, Code::not_found);
}

// The system's loader knows objects by path: sessions that come and go must not get each other's code.
TEST_F(PlanSession, SessionsKeepTheirOwnCode) {
  add_weights(plan, folder.path());
  auto first = bound();
  ASSERT_TRUE(first) << first.error().message;
  {
    auto gone = bound();
  }
  auto second = bound();
  ASSERT_TRUE(second) << second.error().message;
  const std::vector<int32_t> tokens = {1, 2, 3, 4}, counts = {4, 1, 2, 0}, rows = {0, 1};
  const NamedInput inputs[] = {{"tokens", in(tokens)}, {"counts", in(counts)}, {"logit_rows", in(rows)}};
  for (auto *session : {&first, &second}) {
    std::vector<float> logits(32, NAN);
    const NamedOutput outputs[] = {{"logits", out(logits)}};
    ASSERT_TRUE((**session)->run(0, inputs, outputs));
    EXPECT_EQ(logits, expected_logits(tokens, rows));
  }
}

} // namespace
} // namespace k31::test
