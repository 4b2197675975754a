// The corpora of test/data/fuzz go through the readers as a fuzzer would feed them: inputs that once made a reader fail, and
// seeds that reach its depths.
#include "runtime/base/file.h"
#include "runtime/base/safetensors_header.h"
#include "runtime/plan/plan_file.h"
#include "runtime/text/vocabulary.h"
#include "test/runtime/plan_builder.h"
#include "tools/dev/fuzz/targets.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

namespace k31::test {
namespace {

std::vector<std::filesystem::path> corpus(std::string_view target) {
  std::vector<std::filesystem::path> files;
  for (const auto &file : std::filesystem::directory_iterator(std::filesystem::path(K31_TEST_DATA "/fuzz") / target))
    files.push_back(file.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(FuzzReplay, Corpora) {
  std::map<std::string_view, size_t> replayed;
  for (const fuzz::Target &target : fuzz::targets)
    for (const std::filesystem::path &path : corpus(target.name)) {
      SCOPED_TRACE(path);
      const std::string bytes = read(path);
      target.run(std::as_bytes(std::span(bytes)));
      ++replayed[target.name];
    }
  for (const fuzz::Target &target : fuzz::targets)
    EXPECT_GE(replayed[target.name], 3u) << target.name;
}

// Every prefix, and every byte changed in turn: cheap neighbours of each input.
TEST(FuzzReplay, Neighbours) {
  size_t runs = 0;
  for (const fuzz::Target &target : fuzz::targets)
    for (const std::filesystem::path &path : corpus(target.name)) {
      SCOPED_TRACE(path);
      std::string bytes = read(path);
      const size_t step = bytes.size() / 200 + 1;
      for (size_t at = 0; at < bytes.size(); at += step, ++runs) {
        target.run(std::as_bytes(std::span(bytes).first(at)));
        const char saved = bytes[at];
        bytes[at] = static_cast<char>(saved + 1 + static_cast<char>(at % 3 * 64));
        target.run(std::as_bytes(std::span(bytes)));
        bytes[at] = saved;
      }
    }
  EXPECT_GT(runs, 500u);
}

// Seeds that are refused at the door would teach a fuzzer nothing.
TEST(FuzzReplay, ASeedOfEachFormatIsAccepted) {
  const auto any = [](std::string_view target, auto accepts) {
    const auto files = corpus(target);
    return std::any_of(files.begin(), files.end(), [&](const auto &path) { return accepts(read(path)); });
  };
  EXPECT_TRUE(any("plan", [](const std::string &bytes) { return check_plan(std::as_bytes(std::span(bytes))).has_value(); }));
  EXPECT_TRUE(any("safetensors", [](const std::string &bytes) {
    TempFolder folder;
    EXPECT_TRUE(write_file(folder.path("x"), bytes));
    const auto tensors = read_safetensors(folder.path("x"));
    return tensors && tensors->size() > 1;
  }));
  EXPECT_TRUE(any("index", [](const std::string &bytes) { return safetensors::parse_index(bytes).has_value(); }));
  EXPECT_TRUE(any("vocabulary", [](const std::string &bytes) { return text::Vocabulary::parse(bytes).has_value(); }));
}

} // namespace
} // namespace k31::test
