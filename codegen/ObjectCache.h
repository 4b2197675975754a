// Compiled objects by content, in a folder that several compilers may share.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace k31 {

class ObjectCache {
public:
  // `folder` is made when it does not exist; empty: nothing is kept.
  static llvm::Expected<ObjectCache> open(llvm::StringRef folder);

  std::optional<std::string> load(llvm::StringRef key) const;
  // Written beside its place, then renamed: another process sees all of it or nothing. A full disk only costs time later.
  void store(llvm::StringRef key, llvm::StringRef bytes) const;

private:
  std::string path(llvm::StringRef key) const;
  std::string folder;
};

} // namespace k31
