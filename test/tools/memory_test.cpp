// The memory table is what the runtime takes: arenas to the byte, everything else within the reserve row.
#include "runtime/schema/plan_generated.h"
#include "runtime/session.h"
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace k31 {
namespace {

// A number of /proc/self/status in bytes.
uint64_t status(const std::string &name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":"))
      return std::stoull(line.substr(name.size() + 1)) * 1024;
  ADD_FAILURE() << "/proc/self/status has no " << name;
  return 0;
}

// What this process holds by itself: heap, stacks and maps, and files in memory such as the kernels' image. Pages of files on
// disk are the system's.
uint64_t own_memory() { return status("RssAnon") + status("RssShmem"); }

constexpr uint64_t kPage = 4096;
uint64_t pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

class Memory : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "k31_memory";
  nlohmann::json table; // of k31c inspect --json

  std::unique_ptr<Session> load() {
    std::filesystem::create_directories(folder);
    const std::string plan = folder + "/tiny.k31";
    shell(K31C " compile " K31_MODELS
               "/tiny-k31 --target cpu --max-context 2048 --max-batch 8 --cpu-level x86-64-v3 --cache-dir " +
          folder + "/kernels -o " + plan + " > " + folder + "/log");
    shell(K31C " inspect " + plan + " --json > " + folder + "/json");
    table = nlohmann::json::parse(std::ifstream(folder + "/json"))["memory"];
    auto session = Session::load(plan);
    EXPECT_TRUE(session) << session.error().message;
    return session ? std::move(*session) : nullptr;
  }
  static void shell(const std::string &command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

  // Poisoned, so that every page of every arena is touched.
  static void bind(Session &session) {
    auto bound = session.bind({.weights = K31_MODELS "/tiny-k31", .threads = 16, .poison = true});
    ASSERT_TRUE(bound) << bound.error().message;
  }
};

TEST_F(Memory, ArenasAreTheTableToTheByte) {
  const auto session = load();
  ASSERT_TRUE(session);
  bind(*session);
  uint64_t allocated = 0;
  for (uint32_t i = 0; i < session->plan().arenas()->size(); ++i) {
    const plan::Arena &arena = *session->plan().arenas()->Get(i);
    EXPECT_EQ(session->arena(i).size(), arena.bytes()) << arena.name()->str();
    EXPECT_EQ(table["arenas"][arena.name()->str()], arena.bytes());
    allocated += session->arena(i).size();
  }
  EXPECT_EQ(table["total"], allocated + session->plan().reserve());
  uint64_t lines = 0;
  for (const auto &[name, bytes] : table["lines"].items())
    lines += bytes.get<uint64_t>();
  EXPECT_EQ(lines, table["total"]);
}

TEST_F(Memory, TheRestStaysWithinTheReserve) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
#endif
#endif
  const auto session = load();
  ASSERT_TRUE(session);
  uint64_t arenas = 0;
  for (const plan::Arena *arena : *session->plan().arenas())
    arenas += pages(arena->bytes());
  const uint64_t reserve = session->plan().reserve(), before = own_memory();
  // The peak: weights are read through buffers that are gone afterwards.
  std::ofstream("/proc/self/clear_refs") << "5";
  const uint64_t resident = status("VmRSS");
  bind(*session);
  const uint64_t after = own_memory(), peak = status("VmHWM") - resident;
  EXPECT_GE(after - before, arenas) << "an arena was not touched, so this test measures nothing";
  EXPECT_LE(after - before - arenas, reserve);
  EXPECT_LE(peak, arenas + reserve);
  std::printf("beside the arenas: %.1f MiB while bound, %.1f MiB at the peak of Bind, reserve %.1f MiB\n",
              double(after - before - arenas) / (1 << 20), double(peak - std::min(peak, arenas)) / (1 << 20),
              double(reserve) / (1 << 20));

  // Run takes nothing more.
  const std::vector<int32_t> counts(4); // no live rows
  const NamedInput inputs[] = {{"counts", std::as_bytes(std::span(counts))}};
  for (int step = 0; step < 3; ++step)
    ASSERT_TRUE(session->run(0, inputs, {}));
  EXPECT_LE(own_memory(), after + (1 << 20));

  // The measure sees what a leak would be.
  std::vector<char> leak(reserve + (1 << 20), 1);
  EXPECT_GT(own_memory() - before - arenas, reserve) << leak[7];
}

} // namespace
} // namespace k31
