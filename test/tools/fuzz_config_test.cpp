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

// Deeper than any stack is; the reader must not call itself once a level.
TEST(FuzzConfig, DeepNestingIsRefused) {
  std::string text = "{\"model_type\":\"kimi_linear\",\"a\":";
  for (const char *open : {"[", "{\"a\":"}) {
    std::string deep = text;
    for (int i = 0; i < 200000; ++i)
      deep += open;
    deep += '1' + std::string(200000, *open == '[' ? ']' : '}') + '}';
    fuzz::config(bytes(deep));
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
    EXPECT_TRUE(failed(importer::parseModelConfig(context, deep, "config.json")));
    EXPECT_NE(message.find("nests lists and objects more than 64 deep"), std::string::npos) << message;
  }
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
