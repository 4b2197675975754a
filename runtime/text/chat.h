// The chat format: nested elements  OPEN tag attributes SEP body CLOSE tag SEP  around messages that end with END_OF_MSG.
//
// Each piece of markup and of content is encoded by itself: content can never make a control id, and BPE never merges over an
// edge.
#pragma once
#include "runtime/text/tokenizer.h"

namespace k31::text {

enum class Role { system, user, assistant };

struct Message {
  Role role = Role::user;
  std::string content;
  std::string thinking; // of an assistant
};

struct ChatOptions {
  bool thinking = true;
  std::string effort; // "low", "high" or "max"; empty: no word about it
};

// The ids of a conversation up to the point where the assistant writes: inside its thinking, or inside its response.
Result<std::vector<int32_t>> encode_chat(const Tokenizer &tokenizer, const std::vector<Message> &messages,
                                         const ChatOptions &options);

} // namespace k31::text
