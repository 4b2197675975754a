#include "runtime/text/chat_stream.h"

namespace k31::text {

ChatText ChatStream::push(int32_t id) {
  ChatText out{innermost(), {}};
  if (id == tokenizer.special(Special::open) || id == tokenizer.special(Special::close)) {
    out.text = decoder.finish();
    inside = id == tokenizer.special(Special::open) ? Inside::opening : Inside::closing;
    tag.clear();
  } else if (id == tokenizer.special(Special::sep) && inside != Inside::body) {
    tag += decoder.finish();
    if (inside == Inside::opening)
      open.push_back(tag.substr(0, tag.find(' ')));
    else if (!open.empty()) // a wrong name still closes: the model is not trusted to balance its markup
      open.pop_back();
    inside = Inside::body;
  } else if (tokenizer.is_special(id)) {
    out.text = decoder.finish(); // end of message, padding: nothing to show
  } else if (inside == Inside::body) {
    out.text = decoder.push(id);
  } else {
    tag += decoder.push(id);
  }
  return out;
}

ChatText ChatStream::finish() {
  ChatText out{innermost(), {}};
  if (inside == Inside::body)
    out.text = decoder.finish();
  return out;
}

} // namespace k31::text
