// The tokenizer against golden ids of the reference, and against damaged vocabulary files.
#include "runtime/text/tokenizer.h"
#include "runtime/text/utf8.h"
#include "test/runtime/sha256.h"
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>

namespace k31::text {
namespace {

using Ids = std::vector<int32_t>;

std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::json golden(const std::string &name) { return nlohmann::json::parse(read(K31_TEST_DATA "/golden/" + name)); }

const Tokenizer &tiny() {
  static const auto tokenizer = Tokenizer::load(K31_MODELS "/tiny-k31");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

Ids encode(const std::string &text) {
  auto ids = tiny().encode(text);
  EXPECT_TRUE(ids) << ids.error().message;
  return *ids;
}

void append_code_point(uint32_t c, std::string &out) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xC0 | c >> 6), char(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  } else {
    out += {char(0xF0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  }
}

void expect_sha(const std::string &text, const nlohmann::json &want) {
  const Ids ids = encode(text);
  EXPECT_EQ(ids.size(), want["tokens"].get<size_t>()) << want["name"];
  EXPECT_EQ(test::sha256(ids), want["sha256"].get<std::string>()) << want["name"];
  std::string back;
  for (const int32_t id : ids)
    back += tiny().bytes(id);
  EXPECT_TRUE(back == text) << want["name"];
}

TEST(Sha256, KnownVectors) {
  EXPECT_EQ(test::sha256("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(test::sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Tokenizer, GoldenSamples) {
  const auto data = golden("tiny-k31.json");
  for (const auto &sample : data["tokenizer"]["samples"]) {
    EXPECT_EQ(encode(sample["text"]), sample["tokens"].get<Ids>()) << sample["text"];
    EXPECT_EQ(*tiny().decode(sample["tokens"].get<Ids>()), sample["text"].get<std::string>());
  }
  for (const auto &prompt : data["greedy"])
    if (prompt["name"] == "text")
      EXPECT_EQ(encode(prompt["text"]), prompt["tokens"].get<Ids>());
}

TEST(Tokenizer, GoldenHeldoutText) {
  const auto want = golden("tiny-k31.json")["tokenizer"];
  const Ids ids = encode(read(K31_TEST_DATA "/golden/heldout.txt"));
  EXPECT_EQ(ids.size(), want["heldout_tokens"].get<size_t>());
  EXPECT_EQ(test::sha256(ids), want["heldout_sha256_int32"].get<std::string>());
}

TEST(Tokenizer, GoldenContinuationsDecode) {
  const auto data = golden("tiny-k31.json");
  for (const auto &row : data["greedy"])
    EXPECT_EQ(*tiny().decode(row["new"].get<Ids>()), row["new_text"].get<std::string>());
}

TEST(Tokenizer, MixedScripts) {
  const auto data = golden("tokenizer.json");
  ASSERT_GE(data["cases"].size(), 50u);
  for (const auto &sample : data["cases"])
    EXPECT_EQ(encode(sample["text"]), sample["tokens"].get<Ids>()) << sample["text"].dump();
}

TEST(Tokenizer, EveryCodePoint) {
  const auto ranges = golden("tokenizer.json")["ranges"];
  std::string text;
  for (uint32_t c = 0x20; c < 0xD7FF; ++c)
    append_code_point(c, text);
  expect_sha(text, ranges[0]);
  text.clear();
  for (uint32_t c = 1; c < 0xD7FF; ++c) {
    append_code_point(c, text);
    text += ' ';
    append_code_point(c, text);
    text += 'a';
  }
  expect_sha(text, ranges[1]);
  text.clear();
  for (uint32_t c = 0x10000; c < 0x32000; ++c) {
    append_code_point(c, text);
    text += 'a';
  }
  expect_sha(text, ranges[2]);
}

TEST(Tokenizer, LongTextIsCut) {
  const auto want = golden("tokenizer.json")["long"];
  const auto repeat = [](const std::string &part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += part;
    return text;
  };
  expect_sha(repeat("a", 60000), want[0]);
  expect_sha(repeat(" ", 60000) + "b", want[1]);
  expect_sha(repeat("word ", 90000), want[2]);
  expect_sha(repeat("xy\x1c", 30000), want[3]);
}

TEST(Tokenizer, TextNeverMakesSpecialIds) {
  for (int32_t id = tiny().base(); id < tiny().size(); ++id) {
    const std::string name(tiny().bytes(id));
    ASSERT_FALSE(name.empty());
    for (const int32_t made : encode("x " + name + name))
      EXPECT_FALSE(tiny().is_special(made)) << name;
  }
}

TEST(Tokenizer, SpecialNames) {
  EXPECT_EQ(tiny().base(), 2048);
  EXPECT_EQ(tiny().size(), 2304);
  EXPECT_EQ(tiny().bytes(2050), "<|end_of_msg|>");
  EXPECT_EQ(tiny().bytes(2056), "<|reserved_token_2056|>");
  EXPECT_EQ(tiny().bytes(2303), "[PAD]");
  EXPECT_EQ(tiny().bytes(2304), "");
  EXPECT_FALSE(tiny().decode({2304}));
  EXPECT_FALSE(tiny().decode({-1}));
}

TEST(Tokenizer, InvalidUtf8IsReadAsReplacement) {
  EXPECT_EQ(encode("a\xff"
                   "b"),
            encode("a\xEF\xBF\xBD"
                   "b"));
  EXPECT_TRUE(encode("").empty());
}

TEST(StreamDecoder, OnlyCompleteCodePoints) {
  const std::string text = "naïve 漢字 🙂 end";
  StreamDecoder decoder(tiny());
  std::string joined;
  for (const int32_t id : encode(text)) {
    const std::string part = decoder.push(id);
    std::string checked;
    EXPECT_EQ(append_utf8(part, false, checked), part.size());
    EXPECT_EQ(checked, part);
    joined += part;
  }
  EXPECT_EQ(joined + decoder.finish(), text);
}

TEST(StreamDecoder, EveryCutGivesTheSameText) {
  const std::string bytes = "a\xE6\xBC\xA2\xF0\x9F\x99\x82\xF0\x9F(\xC0\x80\xED\xA0\x80\xE6\xBC";
  std::string whole;
  append_utf8(bytes, true, whole);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    std::string text, rest = bytes.substr(0, cut);
    rest.erase(0, append_utf8(rest, false, text));
    rest += bytes.substr(cut);
    append_utf8(rest, true, text);
    EXPECT_EQ(text, whole) << cut;
  }
}

TEST(Utf8, ReplacesMaximalParts) {
  const auto fixed = [](std::string_view bytes) {
    std::string out;
    append_utf8(bytes, true, out);
    return out;
  };
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(fixed("\xF0\x9F\x99"), r);                 // one cut code point
  EXPECT_EQ(fixed("\xF0\x9F("), r + "(");              // cut by another character
  EXPECT_EQ(fixed("\xC0\x80"), r + r);                 // overlong
  EXPECT_EQ(fixed("\xED\xA0\x80"), r + r + r);         // surrogate
  EXPECT_EQ(fixed("\xF4\x90\x80\x80"), r + r + r + r); // past U+10FFFF
}

// ---- damaged files

std::string vocabulary_file() { return read(K31_MODELS "/tiny-k31/tiktoken.model"); }

std::string refusal(const std::string &file) {
  auto result = Tokenizer::parse(file);
  return result ? "accepted" : result.error().message;
}

TEST(Vocabulary, RefusesDamage) {
  const std::string good = vocabulary_file();
  ASSERT_EQ(refusal(good), "accepted");
  EXPECT_EQ(refusal(good.substr(0, good.size() - 1)), "accepted"); // no newline at the end
  const size_t first = good.find('\n') + 1;
  const auto has = [](const std::string &message, const std::string &part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(refusal(""), "0 lines");
  has(refusal(good.substr(first)), "gap");                    // rank 0 is missing
  has(refusal(good + good.substr(0, first)), "given before"); // rank 0 twice
  has(refusal("AA== 0\n" + good.substr(first) + "AA== 2048\n"), "same token");
  has(refusal("AA==0\n" + good.substr(first)), "line 1");
  has(refusal("A*== 0\n" + good.substr(first)), "not base64");
  has(refusal("AB== 0\n" + good.substr(first)), "not base64"); // bits after the last byte
  has(refusal("A=== 0\n" + good.substr(first)), "not base64");
  has(refusal(" 0\n" + good.substr(first)), "not base64");
  has(refusal("AA== 0x\n" + good.substr(first)), "not a number");
  has(refusal("AA== -1\n" + good.substr(first)), "not a number");
  has(refusal("AA== 99999999999\n" + good.substr(first)), "not a number");
  has(refusal("AAAAAAAA 0\n" + good.substr(first)), "single byte 0");
  has(refusal(good + "\n"), "line 2049");
}

TEST(Vocabulary, MissingFileNamesThePath) {
  auto result = Tokenizer::load("/nonexistent");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("/nonexistent/tiktoken.model"), std::string::npos);
}

} // namespace
} // namespace k31::text
