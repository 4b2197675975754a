// Reads what the assistant writes, id by id: the markup is taken off and text comes out with the element that it belongs to.
#pragma once
#include "runtime/text/tokenizer.h"

namespace k31::text {

struct ChatText {
  std::string element; // "think", "response", ... : the innermost open element
  std::string text;    // complete code points
};

class ChatStream {
public:
  // `element`: what the prompt left open for the assistant.
  ChatStream(const Tokenizer &tokenizer, std::string element)
      : tokenizer(tokenizer), decoder(tokenizer), open{"message", std::move(element)} {}

  ChatText push(int32_t id); // the text may be empty
  ChatText finish();

private:
  std::string innermost() const { return open.empty() ? "" : open.back(); }
  enum class Inside { body, opening, closing };

  const Tokenizer &tokenizer;
  StreamDecoder decoder;
  std::vector<std::string> open; // elements, outermost first
  Inside inside = Inside::body;
  std::string tag; // collected between OPEN or CLOSE and SEP
};

} // namespace k31::text
