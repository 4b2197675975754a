// Compiled objects by content, in a folder that several compilers may share at the same time: files appear whole, a file that
// another compiler has taken away is made again.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace k31 {

// The symbol of a kernel, which is its key in the cache too: a hash of all that its code follows from, in order.
std::string symbolOf(llvm::ArrayRef<llvm::StringRef> parts);

class ObjectCache {
public:
  static constexpr uint64_t kLimit = uint64_t(1) << 30; // bytes; some 50,000 kernels

  // `folder` is made when it does not exist; empty: nothing is kept.
  static llvm::Expected<ObjectCache> open(llvm::StringRef folder);

  // Counts as a use of the object.
  std::optional<std::string> load(llvm::StringRef key) const;
  // Written beside its place, then renamed: another process sees all of it or nothing. A full disk only costs time later.
  void store(llvm::StringRef key, llvm::StringRef bytes) const;
  // When the objects have more bytes than the limit: removes those that were used the longest ago, down to 9/10 of it. Also what
  // compilers that were killed have left half written.
  void trim(uint64_t limit = kLimit) const;

private:
  std::string path(llvm::StringRef key) const;
  std::string folder;
};

} // namespace k31
