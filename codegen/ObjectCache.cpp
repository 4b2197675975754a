#include "codegen/ObjectCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace k31 {

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
  if (folder.empty())
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

} // namespace k31
