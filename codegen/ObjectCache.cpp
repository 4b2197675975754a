#include "codegen/ObjectCache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <filesystem>
#include <vector>

using namespace llvm;

namespace k31 {

std::string symbolOf(ArrayRef<StringRef> parts) {
  std::string all;
  for (StringRef part : parts) {
    uint64_t size = part.size(); // so that no two lists of parts read the same
    all.append(reinterpret_cast<const char *>(&size), sizeof size);
    all.append(part.begin(), part.end());
  }
  XXH128_hash_t hash = xxh3_128bits(arrayRefFromStringRef(all));
  return "k31_" + utohexstr(hash.high64, /*LowerCase=*/true, 16) + utohexstr(hash.low64, /*LowerCase=*/true, 16);
}

// A hash of the object follows it, so that a damaged file is made again.
static std::string checked(StringRef bytes) {
  XXH128_hash_t hash = xxh3_128bits(arrayRefFromStringRef(bytes));
  return (bytes + StringRef(reinterpret_cast<const char *>(&hash), sizeof hash)).str();
}

Expected<ObjectCache> ObjectCache::open(StringRef folder) {
  if (!folder.empty())
    if (std::error_code code = sys::fs::create_directories(folder))
      return createStringError(inconvertibleErrorCode(), "cannot make the kernel cache " + folder + ": " + code.message());
  ObjectCache cache;
  cache.folder = folder.str();
  return cache;
}

std::string ObjectCache::path(StringRef key) const {
  SmallString<128> path(folder);
  sys::path::append(path, key + ".o");
  return path.str().str();
}

std::optional<std::string> ObjectCache::load(StringRef key) const {
  if (folder.empty() || !sys::fs::is_regular_file(path(key))) // a pipe would wait
    return std::nullopt;
  auto file = MemoryBuffer::getFile(path(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  StringRef all = (*file)->getBuffer();
  if (all.size() <= sizeof(XXH128_hash_t))
    return std::nullopt;
  StringRef bytes = all.drop_back(sizeof(XXH128_hash_t));
  if (checked(bytes) != all)
    return std::nullopt;
  std::error_code ignored; // a folder that is read-only for us still serves
  std::filesystem::last_write_time(path(key), std::filesystem::file_time_type::clock::now(), ignored);
  return bytes.str();
}

void ObjectCache::store(StringRef key, StringRef bytes) const {
  if (folder.empty())
    return;
  SmallString<128> pattern(folder);
  sys::path::append(pattern, key + "-%%%%%%%%.tmp");
  Expected<sys::fs::TempFile> file = sys::fs::TempFile::create(pattern);
  if (!file)
    return consumeError(file.takeError());
  raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
  stream << checked(bytes);
  stream.flush();
  bool failed = stream.has_error();
  stream.clear_error();
  consumeError(failed ? file->discard() : file->keep(path(key)));
}

void ObjectCache::trim(uint64_t limit) const {
  namespace fs = std::filesystem;
  if (folder.empty())
    return;
  struct File {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<File> objects;
  uint64_t total = 0;
  const auto abandoned = fs::file_time_type::clock::now() - std::chrono::hours(1);
  // Other compilers work in the folder: whatever goes wrong with one file, it is left alone.
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code one, two;
    const File file{at->last_write_time(one), at->file_size(two), at->path()};
    if (one || two)
      continue;
    if (file.path.extension() == ".o")
      objects.push_back(file), total += file.bytes;
    else if (file.path.extension() == ".tmp" && file.used < abandoned)
      fs::remove(file.path, one);
  }
  if (total <= limit)
    return;
  std::sort(objects.begin(), objects.end(), [](const File &a, const File &b) { return a.used < b.used; });
  for (const File &file : objects) {
    if (total <= limit / 10 * 9)
      return;
    if (fs::remove(file.path, error))
      total -= file.bytes;
  }
}

} // namespace k31
