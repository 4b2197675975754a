// The folder of compiled kernels: bounded, by last use, and shared by compilers that work at the same time.
#include "codegen/ObjectCache.h"
#include <atomic>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace k31 {
namespace {

namespace fs = std::filesystem;

struct Cache : ::testing::Test {
  std::string folder = ::testing::TempDir() + "/k31-object-cache-" + std::to_string(getpid());
  ObjectCache cache = llvm::cantFail(ObjectCache::open(folder));

  ~Cache() override { fs::remove_all(folder); }
  void age(const std::string &name, int hours) const {
    fs::last_write_time(folder + "/" + name, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  std::string object(int i) const { return "object-" + std::to_string(i); }
};

TEST_F(Cache, RemovesWhatWasUsedTheLongestAgo) {
  for (int i = 0; i < 10; ++i) {
    cache.store(object(i), std::string(1000, char('a' + i)));
    age(object(i) + ".o", 20 - i); // 0 is the oldest
  }
  const uint64_t each = fs::file_size(folder + "/object-0.o");
  cache.trim(10 * each);
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(fs::exists(folder + "/" + object(i) + ".o")) << i;
  EXPECT_TRUE(cache.load(object(0))); // a use: now it is the youngest
  cache.trim(5 * each);
  EXPECT_TRUE(cache.load(object(0)));
  EXPECT_TRUE(cache.load(object(9)));
  for (int i = 1; i < 6; ++i)
    EXPECT_FALSE(cache.load(object(i))) << i;
  uint64_t left = 0;
  for (const auto &file : fs::directory_iterator(folder))
    left += file.file_size();
  EXPECT_LE(left, 5 * each);
  EXPECT_GE(left, 4 * each);
}

TEST_F(Cache, RemovesWhatAKilledCompilerLeft) {
  std::ofstream(folder + "/old-1234.tmp") << "half";
  std::ofstream(folder + "/new-1234.tmp") << "half";
  age("old-1234.tmp", 2);
  cache.trim();
  EXPECT_FALSE(fs::exists(folder + "/old-1234.tmp"));
  EXPECT_TRUE(fs::exists(folder + "/new-1234.tmp")) << "another compiler may be writing it";
}

TEST_F(Cache, ManyCompilersAtOnce) {
  std::atomic<int> wrong = 0, found = 0;
  std::vector<std::thread> compilers;
  for (int t = 0; t < 4; ++t)
    compilers.emplace_back([&, t] {
      const ObjectCache mine = llvm::cantFail(ObjectCache::open(folder));
      for (int i = 0; i < 400; ++i) {
        const int key = (i * 7 + t) % 20;
        if (auto bytes = mine.load(object(key)))
          ++found, wrong += *bytes != std::string(500 + key, char('a' + key));
        else
          mine.store(object(key), std::string(500 + key, char('a' + key)));
        if (i % 50 == 49)
          mine.trim(5000);
      }
    });
  for (std::thread &compiler : compilers)
    compiler.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, 0);
}

} // namespace
} // namespace k31
