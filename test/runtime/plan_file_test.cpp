// Damage of plan files: nothing that is not whole is ever loaded, and no bytes make the checks crash.
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/plan/plan_file.h"
#include "test/runtime/plan_builder.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

namespace k31::test {
namespace {

// In memory that is aligned as an open plan is, with the exact length, so that a sanitizer sees every byte beyond it.
Result<const plan::Plan *> verify(const std::string &bytes) {
  std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  memcpy(copy.get(), bytes.data(), bytes.size());
  return verify_plan({copy.get(), bytes.size()});
}

// A plan whose image is a few bytes, so that most of the file is tables.
plan::PlanT bare_plan() {
  plan::PlanT plan = sample_plan();
  plan.images[0]->code = {1, 2, 3, 4};
  plan.images[0]->features = {"avx2"};
  return plan;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(PlanFile, EveryDamagedByteIsSeen) {
  const std::string whole = file(bare_plan());
  ASSERT_TRUE(verify(whole)) << verify(whole).error().message;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    ASSERT_FALSE(verify(damaged)) << "byte " << i;
  }
  for (size_t length = 0; length < whole.size(); ++length)
    ASSERT_FALSE(verify(whole.substr(0, length))) << length;
}

TEST(PlanFile, OtherFiles) {
  TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("p.k31"), ""));
  EXPECT_HAS(PlanFile::open(folder.path("p.k31")).error().message, "p.k31: the file has 0 bytes");
  ASSERT_TRUE(write_file(folder.path("p.k31"), std::string(1000, 'x')));
  EXPECT_HAS(PlanFile::open(folder.path("p.k31")).error().message, "end mark K31PEND is missing");
  std::filesystem::resize_file(folder.path("p.k31"), uint64_t(1) << 40); // one that is not read whole to find that out
  EXPECT_HAS(PlanFile::open(folder.path("p.k31")).error().message, "end mark K31PEND is missing");
  const std::string other(64, '\0');
  EXPECT_HAS(verify(seal(std::as_bytes(std::span(other)))).error().message, "identifier is not K31P");
  EXPECT_HAS(verify(seal({})).error().message, "identifier is not K31P");
}

// What was checked stays: a file that is overwritten in place, or cut, while its plan is in use.
TEST(PlanFile, LaterChangesOfTheFileAreNotSeen) {
  TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("p.k31"), file(bare_plan())));
  const auto plan = PlanFile::open(folder.path("p.k31"));
  ASSERT_TRUE(plan) << plan.error().message;
  const std::string family = plan->plan().model()->family()->str();
  std::ofstream(folder.path("p.k31"), std::ios::in | std::ios::out) << std::string(1000, 'x');
  EXPECT_EQ(plan->plan().model()->family()->str(), family);
  std::filesystem::resize_file(folder.path("p.k31"), 0);
  EXPECT_EQ(plan->plan().model()->family()->str(), family);
}

// Every released version's plan, as that version wrote it.
TEST(PlanFile, GoldenPlansLoad) {
  size_t loaded = 0;
  for (const auto &file : std::filesystem::directory_iterator(K31_TEST_SCHEMA "/golden")) {
    if (file.path().extension() != ".k31")
      continue;
    const auto plan = PlanFile::open(file.path().string());
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(file.path().stem(), cat("plan-", plan->plan().major(), ".", plan->plan().minor()));
    ++loaded;
  }
  EXPECT_GE(loaded, 2u);
  const auto first = PlanFile::open(K31_TEST_SCHEMA "/golden/plan-1.0.k31");
  ASSERT_TRUE(first) << first.error().message;
  const plan::Plan &plan = first->plan();
  EXPECT_EQ(plan.key()->checkpoint()->str(), "c0");
  EXPECT_EQ(plan.mesh()->tp(), 2u);
  EXPECT_EQ(plan.weights()->size(), 2u);
  ASSERT_EQ(plan.entries()->size(), 1u);
  EXPECT_EQ(plan.entries()->Get(0)->name()->str(), "decode_b2");
  EXPECT_EQ(plan.entries()->Get(0)->commands()->size(), 6u);
  EXPECT_EQ(plan.kernels()->Get(0)->config()->str(), "rows = 2");
}

TEST(PlanFile, VersionsAreNamed) {
  plan::PlanT plan = bare_plan();
  plan.minor = kPlanMinor + 1;
  EXPECT_HAS(verify(file(plan)).error().message,
             cat("the plan has format 1.", kPlanMinor + 1, ", this program reads 1.0 to 1.", kPlanMinor));
  EXPECT_EQ(verify(file(plan)).error().code, Code::unsupported);
  plan.minor = 0, plan.major = kPlanMajor + 1;
  EXPECT_HAS(verify(file(plan)).error().message, "format 2.0");
  plan.major = 0;
  EXPECT_HAS(verify(file(plan)).error().message, "format 0.0");
}

// Bytes changed and sealed again: a hostile file, not a damaged one. Load must answer, whatever the answer is.
TEST(PlanFile, HostileTablesDoNotCrash) {
  TempFolder folder;
  plan::PlanT plan = bare_plan();
  add_weights(plan, folder.path());
  const std::string body = flatbuffer(plan);
  std::mt19937 random(3);
  size_t refused = 0, accepted = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string bytes = body;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      default:
        memset(bytes.data() + at, random() % 2 ? 0xff : 0, std::min<size_t>(8, bytes.size() - at));
      }
    }
    auto result = verify(seal(std::as_bytes(std::span(bytes))));
    (result ? accepted : refused)++;
    if (!result) {
      ASSERT_EQ(result.error().message.find('\n'), std::string::npos) << "one line: " << result.error().message;
      ASSERT_FALSE(result.error().message.empty());
    }
  }
  EXPECT_GT(refused, 10000u);
  EXPECT_GT(accepted, 100u) << "changes in names and labels are harmless; when all are refused the test reaches no deep check";
}

} // namespace
} // namespace k31::test
