#include "tools/k31_run/printer.h"

namespace k31::run {

Transcript::Transcript(const text::Tokenizer &tokenizer, const std::string &element) : tokenizer(tokenizer), plain(tokenizer) {
  if (!element.empty())
    chat.emplace(tokenizer, element);
}

std::string Transcript::show(const text::ChatText &part) {
  // The space between elements is markup too: a name with nothing after it is not shown.
  if (part.text.empty())
    return {};
  if (part.element == "think")
    think += part.text;
  else if (part.element == "response")
    answer += part.text;
  std::string text;
  if (part.element != shown_element) {
    text = (shown_element.empty() ? "[" : "\n[") + (part.element.empty() ? "text" : part.element) + "]\n";
    shown_element = part.element;
  }
  return text + part.text;
}

std::string Transcript::push(int32_t id) {
  if (chat)
    return show(chat->push(id));
  using text::Special;
  const bool markup =
      id == tokenizer.special(Special::open) || id == tokenizer.special(Special::close) || id == tokenizer.special(Special::sep);
  std::string text;
  if (markup || !tokenizer.is_special(id))
    text = plain.push(id);
  answer += text;
  return text;
}

std::string Transcript::finish() {
  if (chat)
    return show(chat->finish());
  std::string text = plain.finish();
  answer += text;
  return text;
}

Printer::Printer(size_t sequences, bool titles, std::FILE *out) : pages(sequences), titles(titles), out(out) { begin(); }

void Printer::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

// Starts the page of the front sequence with what it already has.
void Printer::begin() {
  if (front == pages.size())
    return;
  if (titles)
    write("--- prompt " + std::to_string(front + 1) + "\n");
  last = '\n';
  std::string waiting;
  waiting.swap(pages[front].text);
  add(front, waiting);
}

void Printer::add(size_t sequence, std::string_view text) {
  if (text.empty())
    return;
  if (sequence != front) {
    pages[sequence].text += text;
    return;
  }
  write(text);
  last = text.back();
}

void Printer::finish(size_t sequence) {
  pages[sequence].finished = true;
  while (front < pages.size() && pages[front].finished) {
    if (last != '\n')
      write("\n");
    ++front;
    begin();
  }
}

} // namespace k31::run
