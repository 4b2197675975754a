#include "compiler/Import/ConfigReader.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using llvm::StringRef;
using llvm::Twine;
using Json = nlohmann::json;

namespace k31::importer {

// The value as written, short and printable whatever the file holds.
static std::string shown(const Json &value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text;
}

static std::string shown(double value) {
  char text[32];
  snprintf(text, sizeof text, "%g", value);
  return text;
}

const Json *ConfigReader::find(StringRef key) {
  read.insert(key);
  auto it = object.find(std::string(key));
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

bool ConfigReader::has(StringRef key) { return find(key) != nullptr; }

const Json *ConfigReader::get(StringRef key, bool optional, StringRef expected) {
  const Json *value = find(key);
  if (!value && !optional)
    fault(key, "is missing, expected " + expected);
  return value;
}

void ConfigReader::fault(StringRef key, const Twine &message) {
  reporter.error(key, "config.json: " + path + key + " " + message);
}

void ConfigReader::unsupported(StringRef key, const Twine &supported) {
  const Json *value = find(key);
  fault(key, "is " + (value ? shown(*value) : "missing") + ", this compiler supports " + supported);
}

int64_t ConfigReader::integer(StringRef key, int64_t low, int64_t high, std::optional<int64_t> absent) {
  const Json *value = get(key, absent.has_value(), "an integer");
  if (!value)
    return absent.value_or(low);
  bool fits = value->is_number_integer() && (!value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t(INT64_MAX));
  if (!fits || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    unsupported(key, low == high ? Twine(low) : "integers from " + Twine(low) + " to " + Twine(high));
    return low;
  }
  return value->get<int64_t>();
}

double ConfigReader::number(StringRef key, double low, double high, std::optional<double> absent) {
  const Json *value = get(key, absent.has_value(), "a number");
  if (!value)
    return absent.value_or(low);
  double found = value->is_number() ? value->get<double>() : NAN;
  if (!(found >= low && found <= high)) {
    unsupported(key, "numbers from " + shown(low) + " to " + shown(high));
    return low;
  }
  return found;
}

bool ConfigReader::boolean(StringRef key, std::optional<bool> absent) {
  const Json *value = get(key, absent.has_value(), "true or false");
  if (!value)
    return absent.value_or(false);
  if (!value->is_boolean()) {
    unsupported(key, "true or false");
    return false;
  }
  return value->get<bool>();
}

std::string ConfigReader::text(StringRef key, llvm::ArrayRef<StringRef> supported, std::optional<std::string> absent) {
  const Json *value = get(key, absent.has_value(), "a text");
  if (!value)
    return absent.value_or("");
  if (value->is_string() && llvm::is_contained(supported, StringRef(value->get_ref<const std::string &>())))
    return value->get<std::string>();
  std::string list;
  for (auto [i, name] : llvm::enumerate(supported))
    list += (i ? " or \"" : "\"") + name.str() + '"';
  unsupported(key, list);
  return supported.front().str();
}

std::vector<int64_t> ConfigReader::integers(StringRef key, int64_t low, int64_t high) {
  const Json *value = get(key, false, "a list of integers");
  std::vector<int64_t> out;
  if (!value)
    return out;
  auto take = [&](const Json &item) {
    if (!item.is_number_integer() || item.get<int64_t>() < low || item.get<int64_t>() > high) {
      fault(key, "holds " + shown(item) + ", expected integers from " + Twine(low) + " to " + Twine(high));
      return false;
    }
    out.push_back(item.get<int64_t>());
    return true;
  };
  if (!value->is_array()) {
    take(*value);
    return out;
  }
  for (const Json &item : *value)
    if (!take(item))
      break;
  return out;
}

void ConfigReader::expect(StringRef key, const Json &wanted, bool required) {
  const Json *value = find(key);
  if (value ? *value != wanted : required)
    unsupported(key, shown(wanted));
}

const Json *ConfigReader::child(StringRef key, bool required) {
  const Json *value = get(key, !required, "an object");
  if (value && !value->is_object()) {
    unsupported(key, "an object");
    return nullptr;
  }
  return value;
}

const Json *ConfigReader::array(StringRef key) {
  const Json *value = find(key);
  if (value && !value->is_array()) {
    unsupported(key, "a list");
    return nullptr;
  }
  return value;
}

void ConfigReader::reportUnread() {
  for (auto &item : object.items()) {
    StringRef key = item.key();
    if (read.contains(key) || llvm::any_of(inertKeys(), [&](const InertKey &inert) { return inert.key == key; }))
      continue;
    reporter.warning(key, "config.json: " + path + key + " is not known to this compiler and has no effect (value " +
                              shown(item.value()) + ")");
  }
}

} // namespace k31::importer
