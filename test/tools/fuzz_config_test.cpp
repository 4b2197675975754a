// The corpus of config.json goes through the compiler's reader as a fuzzer would feed it; test/runtime/fuzz_replay_test.cpp does
// the same for the readers of the runtime.
#include "compiler/Import/ModelConfig.h"
#include "mlir/IR/Diagnostics.h"
#include "tools/dev/fuzz/targets.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>

namespace k31 {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const auto &file : std::filesystem::directory_iterator(K31_TEST_DATA "/fuzz/config")) {
    std::ifstream in(file.path(), std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

fuzz::Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(FuzzConfig, CorpusAndItsNeighbours) {
  size_t runs = 0;
  for (std::string text : corpus()) {
    fuzz::config(bytes(text));
    for (size_t at = 0, step = text.size() / 300 + 1; at < text.size(); at += step, ++runs) {
      fuzz::config(bytes(text).first(at));
      const char saved = text[at];
      for (const char other : {char(saved + 1), '0', '9', '-', '"', '[', '}'}) {
        text[at] = other;
        fuzz::config(bytes(text));
      }
      text[at] = saved;
    }
  }
  EXPECT_GT(runs, 500u);
}

// One that is refused at the door would teach a fuzzer nothing.
TEST(FuzzConfig, ASeedOfEachFamilyIsAccepted) {
  std::set<importer::Family> families;
  for (const std::string &text : corpus()) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &) {});
    if (const auto config = importer::parseModelConfig(context, text, "config.json"); succeeded(config))
      families.insert(config->family);
  }
  EXPECT_EQ(families.size(), 3u);
}

} // namespace
} // namespace k31
