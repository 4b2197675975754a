// Text to token ids and back, from the tiktoken.model file of a checkpoint.
//
// Ids: the base tokens by rank, then 256 special ids. Ordinary text never becomes a special id, whatever it spells.
#pragma once
#include "runtime/text/split.h"
#include "runtime/text/vocabulary.h"

namespace k31::text {

// Offsets of the named special ids behind the base tokens.
enum class Special : int32_t {
  bos = 0,
  eos = 1,
  end_of_msg = 2,
  open = 3,
  close = 4,
  sep = 5,
  start_header = 6,
  end_header = 7,
  eot = 9,
  media_begin = 18,
  media_content = 19,
  media_end = 20,
  media_pad = 21,
  osagent_mode = 65,
  unk = 254,
  pad = 255,
};

class Tokenizer {
public:
  static constexpr int32_t specials = 256;

  static Result<Tokenizer> load(const std::string &checkpoint); // folder
  static Result<Tokenizer> parse(std::string_view tiktoken_model);

  int32_t base() const { return vocabulary.size(); }
  int32_t size() const { return base() + specials; }
  int32_t special(Special which) const { return base() + int32_t(which); }
  bool is_special(int32_t id) const { return id >= base() && id < size(); }

  // The bytes of a base token, or the name of a special one ("<|open|>"); empty for an id out of range.
  std::string_view bytes(int32_t id) const;

  Result<std::vector<int32_t>> encode(std::string_view text) const;
  Result<void> encode(std::string_view text, std::vector<int32_t> &ids) const; // appends

  // Special ids are written by name and invalid UTF-8 is replaced. An id out of range is refused.
  Result<std::string> decode(const std::vector<int32_t> &ids) const;

private:
  Tokenizer(Vocabulary vocabulary, Splitter splitter);
  Vocabulary vocabulary;
  Splitter splitter;
  std::vector<std::string> names; // of the special ids
};

// Text of ids that arrive one by one: only complete code points come out, so a terminal never sees half of one.
class StreamDecoder {
public:
  explicit StreamDecoder(const Tokenizer &tokenizer) : tokenizer(tokenizer) {}
  std::string push(int32_t id);
  std::string finish(); // replaces what is left incomplete

private:
  const Tokenizer &tokenizer;
  std::string pending;
};

} // namespace k31::text
