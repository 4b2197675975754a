#include "runtime/text/tokenizer.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/text/bpe.h"
#include "runtime/text/utf8.h"

namespace k31::text {
namespace {

std::string special_name(int32_t offset, int32_t base) {
  switch (Special(offset)) {
  case Special::bos:
    return "[BOS]";
  case Special::eos:
    return "[EOS]";
  case Special::end_of_msg:
    return "<|end_of_msg|>";
  case Special::open:
    return "<|open|>";
  case Special::close:
    return "<|close|>";
  case Special::sep:
    return "<|sep|>";
  case Special::start_header:
    return "[start_header_id]";
  case Special::end_header:
    return "[end_header_id]";
  case Special::eot:
    return "[EOT]";
  case Special::media_begin:
    return "<|media_begin|>";
  case Special::media_content:
    return "<|media_content|>";
  case Special::media_end:
    return "<|media_end|>";
  case Special::media_pad:
    return "<|media_pad|>";
  case Special::osagent_mode:
    return "<osagent_mode>";
  case Special::unk:
    return "[UNK]";
  case Special::pad:
    return "[PAD]";
  }
  return "<|reserved_token_" + std::to_string(base + offset) + "|>";
}

} // namespace

Tokenizer::Tokenizer(Vocabulary v, Splitter s) : vocabulary(std::move(v)), splitter(std::move(s)) {
  for (int32_t i = 0; i < specials; ++i)
    names.push_back(special_name(i, base()));
}

Result<Tokenizer> Tokenizer::load(const std::string &checkpoint) {
  const std::string path = checkpoint + "/tiktoken.model";
  auto content = read_text(path);
  if (!content && content.error().code == Code::not_found)
    return fail(Code::not_found, quote(path, 4096) + " does not exist, and text needs a tokenizer; give the folder of the "
                                                     "checkpoint, or token ids instead of text");
  if (!content)
    return context("tokenizer", content.error());
  auto result = parse(*content);
  if (!result)
    return context(path, result.error());
  return result;
}

Result<Tokenizer> Tokenizer::parse(std::string_view tiktoken_model) {
  K31_ASSIGN(Vocabulary vocabulary, Vocabulary::parse(tiktoken_model));
  K31_ASSIGN(Splitter splitter, Splitter::make());
  return Tokenizer(std::move(vocabulary), std::move(splitter));
}

std::string_view Tokenizer::bytes(int32_t id) const {
  if (id < 0 || id >= size())
    return {};
  return id < base() ? vocabulary.bytes(id) : std::string_view(names[size_t(id - base())]);
}

Result<void> Tokenizer::encode(std::string_view text, std::vector<int32_t> &ids) const {
  Bpe bpe(vocabulary);
  return splitter.split(text, [&](std::string_view piece) { bpe.encode(piece, ids); });
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  K31_TRY(encode(text, ids));
  return ids;
}

Result<std::string> Tokenizer::decode(const std::vector<int32_t> &ids) const {
  std::string raw, text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size())
      return fail(Code::invalid_input, "id " + std::to_string(id) + " is not in the vocabulary of " + std::to_string(size()));
    raw += bytes(id);
  }
  append_utf8(raw, true, text);
  return text;
}

std::string StreamDecoder::push(int32_t id) {
  std::string text;
  pending += tokenizer.bytes(id);
  pending.erase(0, append_utf8(pending, false, text));
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  append_utf8(pending, true, text);
  pending.clear();
  return text;
}

} // namespace k31::text
