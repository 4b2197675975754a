#include "runtime/text/chat.h"
#include <optional>
#include <utility>

namespace k31::text {
namespace {

const char *role_name(Role role) {
  switch (role) {
  case Role::system:
    return "system";
  case Role::user:
    return "user";
  case Role::assistant:
    return "assistant";
  }
  return "";
}

// Attribute values escape & and " alone.
std::string escaped(std::string_view value) {
  std::string result;
  for (const char c : value) {
    if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

using Attributes = std::vector<std::pair<std::string, std::string>>;

class Writer {
public:
  explicit Writer(const Tokenizer &tokenizer) : tokenizer(tokenizer) {}

  void control(Special which) { ids.push_back(tokenizer.special(which)); }

  void text(std::string_view segment) {
    if (auto done = tokenizer.encode(segment, ids); !done && !error)
      error = done.error();
  }

  void open(std::string_view tag, const Attributes &attributes = {}) {
    control(Special::open);
    text(tag);
    for (const auto &[key, value] : attributes) { // four segments each
      text(" " + key);
      text("=\"");
      text(escaped(value));
      text("\"");
    }
    control(Special::sep);
  }

  void close(std::string_view tag) {
    control(Special::close);
    text(tag);
    control(Special::sep);
  }

  void close_message() {
    close("message");
    control(Special::end_of_msg);
  }

  void element(std::string_view tag, std::string_view body) {
    open(tag);
    text(body);
    close(tag);
  }

  const Tokenizer &tokenizer;
  std::vector<int32_t> ids;
  std::optional<Error> error;
};

// The wording is part of the protocol.
std::string effort_text(const std::string &effort) {
  return "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
         "supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort=" +
         effort + "`.";
}

} // namespace

Result<std::vector<int32_t>> encode_chat(const Tokenizer &tokenizer, const std::vector<Message> &messages,
                                         const ChatOptions &options) {
  if (!options.effort.empty() && options.effort != "low" && options.effort != "high" && options.effort != "max")
    return fail(Code::invalid_input, "thinking effort \"" + options.effort + "\"; expected low, high or max");
  Writer writer(tokenizer);
  if (options.thinking && !options.effort.empty()) {
    writer.open("message", {{"role", "system"}, {"type", "thinking-effort"}});
    writer.text(effort_text(options.effort));
    writer.close_message();
  }
  for (const Message &message : messages) {
    writer.open("message", {{"role", role_name(message.role)}});
    if (message.role == Role::assistant) {
      if (options.thinking)
        writer.element("think", message.thinking);
      writer.element("response", message.content);
    } else {
      writer.text(message.content);
    }
    writer.close_message();
  }
  writer.open("message", {{"role", "assistant"}});
  writer.open(options.thinking ? "think" : "response");
  if (writer.error)
    return tl::unexpected(*writer.error);
  return std::move(writer.ids);
}

} // namespace k31::text
