// Headers of safetensors files: what is written reads back, and every kind of damage is refused with its reason.
#include "runtime/base/file.h"
#include "runtime/base/safetensors.h"
#include "test/runtime/plan_builder.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace k31::test {
namespace {

// A file with the given header text and `data` bytes of zeros.
std::string raw(const std::string &header, size_t data) {
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + std::string(data, '\0');
}

struct BaseSafetensors : ::testing::Test {
  TempFolder folder;
  std::string refusal(const std::string &file) {
    EXPECT_TRUE(write_file(folder.path("x"), file));
    auto result = read_safetensors(folder.path("x"));
    return result ? "(accepted)" : result.error().message;
  }
  void shard(const std::string &name, std::vector<std::string> tensors) {
    const float value = 1;
    std::vector<TensorData> list;
    for (std::string &tensor : tensors)
      list.push_back({tensor, "F32", {1}, std::as_bytes(std::span(&value, 1))});
    ASSERT_TRUE(write_safetensors(folder.path(name), list));
  }
  void index(const std::string &map) {
    ASSERT_TRUE(write_file(folder.path("model.safetensors.index.json"),
                           "{\"metadata\": {\"total_size\": [1, {}, -2.5, null, true]}, \"weight_map\": {" + map + "}}"));
  }
  std::string checkpoint_refusal() {
    auto result = read_checkpoint(folder.path());
    return result ? "(accepted)" : result.error().message;
  }
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(BaseSafetensors, RoundTrip) {
  const std::vector<uint16_t> half = {1, 2, 3, 4, 5, 6};
  const std::vector<uint8_t> codes = {7, 8, 9};
  const TensorData tensors[] = {{"z \"quoted\" \n", "BF16", {2, 3}, std::as_bytes(std::span(half))},
                                {"a", "U8", {3}, std::as_bytes(std::span(codes))},
                                {"none", "F32", {0, 5}, {}},
                                {"scalar", "U8", {}, std::as_bytes(std::span(codes).first(1))}};
  ASSERT_TRUE(write_safetensors(folder.path("x"), tensors));
  auto read_back = read_safetensors(folder.path("x"), 7);
  ASSERT_TRUE(read_back) << read_back.error().message;
  ASSERT_EQ(read_back->size(), 4u);
  const std::string bytes = read(folder.path("x"));
  for (const TensorData &tensor : tensors) {
    auto at = std::find_if(read_back->begin(), read_back->end(), [&](const TensorInfo &t) { return t.name == tensor.name; });
    ASSERT_NE(at, read_back->end()) << tensor.name;
    EXPECT_EQ(at->dtype, tensor.dtype);
    EXPECT_EQ(at->shape, tensor.shape);
    EXPECT_EQ(at->file, 7u);
    ASSERT_EQ(at->end - at->begin, tensor.bytes.size());
    EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(),
                           std::as_bytes(std::span(bytes)).begin() + static_cast<ptrdiff_t>(at->begin)));
  }
  EXPECT_EQ(read_back->front().name, "a") << "tensors come in order of name";
}

TEST_F(BaseSafetensors, WriterRefusesWrongSizes) {
  const std::byte bytes[4] = {};
  const TensorData wrong[] = {{"t", "F32", {2}, bytes}}, unknown[] = {{"t", "F31", {1}, bytes}},
                   twice[] = {{"t", "U8", {4}, bytes}, {"t", "U8", {4}, bytes}};
  EXPECT_HAS(write_safetensors(folder.path("x"), wrong).error().message, "has 4 bytes, but its shape and dtype F32 need 8");
  EXPECT_FALSE(write_safetensors(folder.path("x"), unknown));
  EXPECT_HAS(write_safetensors(folder.path("x"), twice).error().message, "given twice");
}

TEST_F(BaseSafetensors, RefusesDamagedHeaders) {
  const std::string good = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  EXPECT_EQ(refusal(raw(good, 4)), "(accepted)");
  EXPECT_EQ(refusal(raw(good + "   ", 4)), "(accepted)");
  EXPECT_HAS(refusal("1234"), "has 4 bytes, a safetensors file has at least 8");
  EXPECT_HAS(refusal(raw(good, 4).substr(0, 40)), "header's length is given as");
  EXPECT_HAS(refusal(std::string(16, '\xff')), "header's length is given as 18446744073709551615");
  EXPECT_HAS(refusal(raw(good, 3)), "but the file holds 3 bytes of data");
  EXPECT_HAS(refusal(raw(good, 5)), "its tensors end at");
  EXPECT_HAS(refusal(raw("not json", 0)), "no valid JSON at byte");
  EXPECT_HAS(refusal(raw(good + "x", 4)), "no valid JSON");
  EXPECT_HAS(refusal(raw("{\"a\xff\": {}}", 0)), "no valid JSON");
  EXPECT_HAS(refusal(raw("[1]", 0)), "a list where");
  EXPECT_HAS(refusal(raw("{\"a\": 3}", 0)), "a number where");
  for (const std::string before : {"", R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"}) { // with and without a tensor
    const auto metadata = [&](const std::string &value) {
      return refusal(raw("{" + before + "\"__metadata__\":{\"k\":" + value + "}}", before.empty() ? 0 : 4));
    };
    EXPECT_EQ(metadata("\"text\""), "(accepted)");
    EXPECT_HAS(metadata("{}"), "an object inside the metadata");
    EXPECT_HAS(metadata("{\"a\":\"b\"}"), "an object inside the metadata");
    EXPECT_HAS(metadata("1"), "a number where");
    EXPECT_HAS(metadata("-1"), "negative number -1");
    EXPECT_HAS(metadata("1.5"), "is not an integer");
    EXPECT_HAS(metadata("[]"), "a list where");
    EXPECT_HAS(metadata("null"), "null where");
    EXPECT_HAS(metadata("true"), "a boolean where");
  }
  EXPECT_HAS(refusal(raw(std::string(100000, '['), 0)), "a list where");
  EXPECT_HAS(refusal(raw("{\"a\":{\"b\":{", 0)), "unknown field 'b'");
}

TEST_F(BaseSafetensors, RefusesWrongTensors) {
  const auto tensor = [](const std::string &name, const std::string &dtype, const std::string &shape, const std::string &range) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + range + "}";
  };
  const auto file = [](const std::string &tensors, size_t data) { return raw("{" + tensors + "}", data); };
  EXPECT_HAS(refusal(file(tensor("a", "U9", "[4]", "[0,4]"), 4)), "unknown dtype 'U9'");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[5]", "[0,4]"), 4)), "has 4 bytes, but its shape and dtype U8 need 5");
  EXPECT_HAS(refusal(file(tensor("a", "F4", "[3]", "[0,1]"), 1)), "need another size");
  EXPECT_EQ(refusal(file(tensor("a", "F4", "[4]", "[0,2]"), 2)), "(accepted)");
  EXPECT_EQ(refusal(file(tensor(std::string(1024, 'n'), "U8", "[4]", "[0,4]"), 4)), "(accepted)");
  EXPECT_HAS(refusal(file(tensor(std::string(1025, 'n'), "U8", "[4]", "[0,4]"), 4)), "a tensor's name of 1025 bytes, 'nnn");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4294967296,4294967296]", "[0,4]"), 4)), "need another size");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4]", "[4,0]"), 4)), "data_offsets [4, 0]");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4]", "[18446744073709551612,18446744073709551615]"), 4)),
             "data_offsets [18446744073709551612");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4]", "[0,99999999999999999999]"), 4)), "is not an integer");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[-4]", "[0,4]"), 4)), "negative number -4");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4.0]", "[0,4]"), 4)), "is not an integer");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4]", "[0,4,4]"), 4)), "has 3 data_offsets");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[[4]]", "[0,4]"), 4)), "a list where");
  std::string ones = "1";
  for (int i = 1; i < 16; ++i)
    ones += ",1";
  EXPECT_EQ(refusal(file(tensor("a", "U8", "[" + ones + "]", "[0,1]"), 1)), "(accepted)");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[" + ones + ",1]", "[0,1]"), 1)), "a list of more than 16 numbers");
  EXPECT_HAS(refusal(file("\"a\":{\"dtype\":\"U8\",\"shape\":[4]}", 4)), "lacks dtype, shape or data_offsets");
  EXPECT_HAS(refusal(file("\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"shape\":[4],\"data_offsets\":[0,4]}", 4)),
             "field 'shape' twice");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("b", "U8", "[4]", "[3,7]"), 7)), "they overlap");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("b", "U8", "[4]", "[5,9]"), 9)), "there is a hole");
  EXPECT_HAS(refusal(file(tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("a", "U8", "[4]", "[4,8]"), 8)), "'a' is named twice");
}

TEST_F(BaseSafetensors, ShowsControlCharactersEscaped) {
  const std::string good = R"("dtype":"U8","shape":[4],"data_offsets":[0,4])";
  EXPECT_HAS(refusal(raw(R"({"a\nb":{)" + good + R"(,"c\u001b":1}})", 4)), R"('a\nb' has the unknown field 'c\x1b')");
  EXPECT_HAS(refusal(raw(R"({"a\u2028":{)" + good + "}}", 3)), R"('a\xe2\x80\xa8' has)");
  index(R"("a": "m\n-1.safetensors")");
  EXPECT_HAS(checkpoint_refusal(), R"(names the file 'm\n-1.safetensors', which is not there)");
  index(R"("a\r": "m/\n")");
  EXPECT_HAS(checkpoint_refusal(), R"(tensor 'a\r' in 'm/\n', which is no plain file name)");
}

TEST_F(BaseSafetensors, ReadsShards) {
  shard("m-2.safetensors", {"b", "d"}), shard("m-1.safetensors", {"c", "a"});
  index(R"("a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-1.safetensors", "d": "m-2.safetensors")");
  auto checkpoint = read_checkpoint(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->files.size(), 2u);
  EXPECT_EQ(checkpoint->files[0].name, "m-1.safetensors");
  EXPECT_EQ(checkpoint->files[0].bytes, std::filesystem::file_size(folder.path("m-1.safetensors")));
  ASSERT_EQ(checkpoint->tensors.size(), 4u);
  EXPECT_EQ(checkpoint->find("d")->file, 1u);
  EXPECT_EQ(checkpoint->find("a")->file, 0u);
  EXPECT_EQ(checkpoint->find("e"), nullptr);
  const std::string names[] = {"m-1.safetensors", "m-2.safetensors"}, swapped[] = {"m-2.safetensors", "m-1.safetensors"};
  EXPECT_EQ(checkpoint->hash, *checkpoint_hash(folder.path(), names));
  EXPECT_NE(checkpoint->hash, *checkpoint_hash(folder.path(), swapped));
  shard("m-2.safetensors", {"b", "e"});
  EXPECT_NE(checkpoint->hash, *checkpoint_hash(folder.path(), names)) << "a header changed";
  EXPECT_EQ(checkpoint->hash.substr(kHeaderDigits), checkpoint_hash(folder.path(), names)->substr(kHeaderDigits));
}

TEST_F(BaseSafetensors, HashCoversTheConfig) {
  shard("model.safetensors", {"a"});
  const auto hash = [&] {
    const auto checkpoint = read_checkpoint(folder.path());
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    return checkpoint ? checkpoint->hash : "";
  };
  const std::string without = hash();
  EXPECT_EQ(without.size(), 2 * kHeaderDigits);
  ASSERT_TRUE(write_file(folder.path("config.json"), "{\"rms_norm_eps\": 1e-5}"));
  const std::string first = hash();
  EXPECT_NE(first, without);
  ASSERT_TRUE(write_file(folder.path("config.json"), "{\"rms_norm_eps\": 1e-6}"));
  EXPECT_NE(hash(), first);
  EXPECT_EQ(hash().substr(0, kHeaderDigits), first.substr(0, kHeaderDigits)) << "the headers are the same";
  const std::string names[] = {"model.safetensors"};
  EXPECT_EQ(hash(), *checkpoint_hash(folder.path(), names));
  std::filesystem::resize_file(folder.path("config.json"), uint64_t(1) << 30);
  EXPECT_HAS(read_checkpoint(folder.path()).error().message, "config.json' has 1073741824 bytes");
}

TEST_F(BaseSafetensors, RefusesInconsistentShards) {
  EXPECT_HAS(checkpoint_refusal(), "holds neither model.safetensors.index.json nor model.safetensors");
  shard("m-1.safetensors", {"a"}), shard("m-2.safetensors", {"b"});
  index(R"("a": "m-1.safetensors", "b": "m-3.safetensors")");
  EXPECT_HAS(checkpoint_refusal(), "names the file 'm-3.safetensors', which is not there");
  index(R"("a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-2.safetensors")");
  EXPECT_HAS(checkpoint_refusal(), "tensor 'c' in 'm-2.safetensors', but no file holds it");
  index(R"("a": "m-2.safetensors", "b": "m-1.safetensors")");
  EXPECT_HAS(checkpoint_refusal(), "tensor 'a' in 'm-2.safetensors', but it is in 'm-1.safetensors'");
  index(R"("a": "m-1.safetensors", "a": "m-2.safetensors")");
  EXPECT_HAS(checkpoint_refusal(), "names tensor 'a' twice");
  for (const char *name : {"../m-1.safetensors", "/etc/passwd", "", ".hidden"}) {
    index(std::string("\"a\": \"") + name + "\"");
    EXPECT_HAS(checkpoint_refusal(), "no plain file name");
  }
  index("\"" + std::string(1025, 'n') + R"(": "m-1.safetensors")");
  EXPECT_HAS(checkpoint_refusal(), "a tensor's name of 1025 bytes, 'nnn");
  index("\"a\": 3");
  EXPECT_HAS(checkpoint_refusal(), "a number where");
  index("\"a\": {\"b\": \"c\"}");
  EXPECT_HAS(checkpoint_refusal(), "the string 'c' where");
  index("");
  EXPECT_HAS(checkpoint_refusal(), "names no tensors");
  shard("m-2.safetensors", {"a"});
  index(R"("a": "m-1.safetensors", "b": "m-2.safetensors")");
  EXPECT_HAS(checkpoint_refusal(), "is in both 'm-1.safetensors' and 'm-2.safetensors'");
  ASSERT_TRUE(write_file(folder.path("m-2.safetensors"), "garbage that is long enough"));
  EXPECT_HAS(checkpoint_refusal(), "m-2.safetensors: the header's length");
}

} // namespace
} // namespace k31::test
