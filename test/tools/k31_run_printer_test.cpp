// What k31-run shows: transcripts of chats and plain text, and the order of several sequences.
#include "tools/k31_run/printer.h"
#include <gtest/gtest.h>
#include <variant>

namespace k31::run {
namespace {

using text::Special;

const text::Tokenizer &tiny() {
  static const auto tokenizer = text::Tokenizer::load(K31_MODELS "/tiny-k31");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

std::string show(Transcript &transcript, const std::vector<std::variant<Special, std::string>> &parts) {
  std::string shown;
  for (const auto &part : parts) {
    std::vector<int32_t> ids;
    if (const auto *special = std::get_if<Special>(&part))
      ids.push_back(tiny().special(*special));
    else
      EXPECT_TRUE(tiny().encode(std::get<std::string>(part), ids));
    for (const int32_t id : ids)
      shown += transcript.push(id);
  }
  return shown + transcript.finish();
}

TEST(Transcript, Chat) {
  Transcript transcript(tiny(), "think");
  EXPECT_EQ(
      show(transcript, {"A greeting 🙂.", Special::close, "think", Special::sep, Special::open, "response", Special::sep, "Hi!",
                        Special::close, "response", Special::sep, Special::close, "message", Special::sep, Special::end_of_msg}),
      "[think]\nA greeting 🙂.\n[response]\nHi!");
  EXPECT_EQ(transcript.thinking(), "A greeting 🙂.");
  EXPECT_EQ(transcript.response(), "Hi!");
}

TEST(Transcript, ChatWithoutThinking) {
  Transcript transcript(tiny(), "response");
  EXPECT_EQ(show(transcript, {"Hi!", Special::close, "response", Special::sep}), "[response]\nHi!");
  EXPECT_EQ(transcript.response(), "Hi!");
}

TEST(Transcript, PlainTextShowsMarkupByNameAndHidesOtherSpecials) {
  Transcript transcript(tiny(), "");
  EXPECT_EQ(show(transcript, {"God said", Special::open, "x", Special::sep, Special::pad, Special::end_of_msg}),
            "God said<|open|>x<|sep|>");
  EXPECT_EQ(transcript.response(), "God said<|open|>x<|sep|>");
}

// A file in memory, read back as a string.
struct Output {
  char *bytes = nullptr;
  size_t size = 0;
  std::FILE *file = open_memstream(&bytes, &size);
  ~Output() {
    std::fclose(file);
    free(bytes);
  }
  std::string text() const { return {bytes, size}; }
};

TEST(Printer, FrontStreamsAndOthersWait) {
  Output output;
  Printer printer(3, true, output.file);
  printer.add(1, "b1 ");
  printer.add(0, "a1 ");
  EXPECT_EQ(output.text(), "--- prompt 1\na1 ");
  printer.finish(2);
  printer.add(1, "b2");
  printer.add(0, "a2");
  printer.finish(0);
  EXPECT_EQ(output.text(), "--- prompt 1\na1 a2\n--- prompt 2\nb1 b2");
  printer.finish(1);
  EXPECT_EQ(output.text(), "--- prompt 1\na1 a2\n--- prompt 2\nb1 b2\n--- prompt 3\n");
}

TEST(Printer, OneSequenceHasNoTitleAndEndsWithOneNewline) {
  Output output;
  Printer printer(1, false, output.file);
  printer.add(0, "text\n");
  printer.finish(0);
  EXPECT_EQ(output.text(), "text\n");
}

} // namespace
} // namespace k31::run
