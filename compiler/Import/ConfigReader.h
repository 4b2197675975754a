// Reads one JSON object of config.json key by key. Every key is untrusted: it has the expected type and range, or a line says
// what was found and what is supported. Keys that were never asked for are reported at the end, so none is ignored silently.
#pragma once
#include "compiler/Import/Reporter.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace k31::importer {

// A key that does not change what the text model computes, and why.
struct InertKey {
  llvm::StringRef key, reason;
};
llvm::ArrayRef<InertKey> inertKeys();

class ConfigReader {
public:
  // `path` names the object in messages: "" for the file itself, else "text_config." and so on.
  ConfigReader(const nlohmann::json &object, std::string path, Reporter &reporter)
      : object(object), path(std::move(path)), reporter(reporter) {}

  bool has(llvm::StringRef key); // present and not null
  // A missing key takes the value `absent`; without one it is an error.
  int64_t integer(llvm::StringRef key, int64_t low, int64_t high, std::optional<int64_t> absent = {});
  double number(llvm::StringRef key, double low, double high, std::optional<double> absent = {});
  bool boolean(llvm::StringRef key, std::optional<bool> absent = {});
  std::string text(llvm::StringRef key, llvm::ArrayRef<llvm::StringRef> supported, std::optional<std::string> absent = {});
  std::vector<int64_t> integers(llvm::StringRef key, int64_t low, int64_t high); // a list, or one number
  // One value is supported; a missing key or null means the same when `required` is false.
  void expect(llvm::StringRef key, const nlohmann::json &value, bool required = false);
  const nlohmann::json *child(llvm::StringRef key, bool required = false); // an object, or null when absent
  const nlohmann::json *array(llvm::StringRef key);

  void unsupported(llvm::StringRef key, const llvm::Twine &supported);
  void fault(llvm::StringRef key, const llvm::Twine &message); // "config.json: <path><key> <message>"
  // One warning for each key that was neither read nor is known to be inert.
  void reportUnread();

private:
  const nlohmann::json *find(llvm::StringRef key);
  const nlohmann::json *get(llvm::StringRef key, bool optional, llvm::StringRef expected);

  const nlohmann::json &object;
  std::string path;
  Reporter &reporter;
  llvm::StringSet<> read;
};

} // namespace k31::importer
