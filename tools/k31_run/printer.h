// Readable text of sequences that are drawn at the same time: the first that is not finished streams, the others wait for their
// turn.
#pragma once
#include "runtime/text/chat_stream.h"
#include <cstdio>
#include <optional>

namespace k31::run {

// The text of one sequence, piece by piece. Chat markup becomes a line with the element's name; other special ids are left out.
class Transcript {
public:
  // `element`: what a chat prompt left open ("think" or "response"); empty for plain text.
  Transcript(const text::Tokenizer &tokenizer, const std::string &element);

  std::string push(int32_t id); // text to show
  std::string finish();

  const std::string &thinking() const { return think; }
  const std::string &response() const { return answer; } // of a chat; of plain text: all of it

private:
  std::string show(const text::ChatText &part);

  const text::Tokenizer &tokenizer;
  std::optional<text::ChatStream> chat;
  text::StreamDecoder plain;
  std::string shown_element;
  std::string think, answer;
};

class Printer {
public:
  // Writes to `out`; `titles`: a line before each sequence.
  Printer(size_t sequences, bool titles, std::FILE *out = stdout);
  void add(size_t sequence, std::string_view text);
  void finish(size_t sequence);

private:
  void begin();
  void write(std::string_view text);
  struct Page {
    std::string text;
    bool finished = false;
  };
  std::vector<Page> pages;
  size_t front = 0;
  bool titles;
  std::FILE *out;
  char last = '\n';
};

} // namespace k31::run
