#include "runtime/base/file.h"
#include "runtime/base/cat.h"
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace k31 {

tl::unexpected<Error> system_error(const std::string &what, int error_number) {
  const Code code = error_number == ENOENT ? Code::not_found : error_number == ENOMEM ? Code::out_of_memory : Code::io;
  return fail(code, what + ": " + std::generic_category().message(error_number));
}

static tl::unexpected<Error> cannot_open(const std::string &path, int error_number) {
  auto error = system_error("cannot open " + quote(path, 4096), error_number);
  error.value().message += "; give the path of a file that can be read";
  return error;
}

// Of a file to write: the user knows nothing of the temporary one.
static tl::unexpected<Error> cannot_write(const std::string &path, int error_number) {
  auto error = system_error("cannot write " + quote(path, 4096), error_number);
  error.value().message += "; nothing was written, make room there or give another place";
  return error;
}

Result<File> File::open(const std::string &path) {
  File file;
  file.path_ = path;
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); // a pipe without a writer would wait for one
  if (file.fd < 0)
    return cannot_open(path, errno);
  struct stat status;
  if (fstat(file.fd, &status) != 0)
    return system_error("cannot read the size of " + quote(path, 4096), errno);
  if (!S_ISREG(status.st_mode))
    return fail(Code::invalid_input, quote(path, 4096) + " is not a regular file; name a file");
  file.bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

File::~File() {
  if (fd >= 0)
    ::close(fd);
}

Result<void> File::read_at(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    // Linux moves at most 2^31 - 4096 bytes in one call.
    const size_t want = std::min<size_t>(out.size(), size_t(1) << 30);
    const ssize_t got = ::pread(fd, out.data(), want, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return system_error("cannot read " + quote(path_, 4096), errno);
    if (got == 0)
      return fail(Code::invalid_input, cat(quote(path_, 4096), " ends at byte ", offset, ", but ", out.size(),
                                           " more bytes were expected; the file is cut short, fetch it again"));
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

static Result<File> open_at_most(const std::string &path, uint64_t limit) {
  K31_ASSIGN(File file, File::open(path));
  if (file.size() > limit)
    return fail(Code::invalid_input, cat(quote(path, 4096), " has ", file.size(), " bytes; at most ", limit, " were expected"));
  return file;
}

Result<FileBytes> FileBytes::read(const std::string &path, uint64_t limit) {
  K31_ASSIGN(const File opened, open_at_most(path, limit));
  FileBytes file;
  file.size = opened.size();
  file.memory.reset(new (std::nothrow) std::byte[file.size]); // not zeroed: pages come as they are read
  if (!file.memory)
    return fail(Code::out_of_memory, cat("no memory is left for the ", file.size, " bytes of ", quote(path, 4096)));
  K31_TRY(opened.read_at(0, {file.memory.get(), file.size}));
  return file;
}

Result<std::string> read_text(const std::string &path, uint64_t limit) {
  K31_ASSIGN(const File file, open_at_most(path, limit));
  std::string text(file.size(), '\0');
  K31_TRY(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

namespace {

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string &path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t(1) << 30));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return cannot_write(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

} // namespace

namespace {

// The file that becomes `path` when it is whole.
struct Temporary {
  std::string name;
  int fd;
};

Result<Temporary> open_temporary(const std::string &path) {
  if (path.empty())
    return fail(Code::io, "cannot write '': give the file a name");
  struct stat existing;
  if (::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) // the rename would replace a device or a folder's name
    return fail(Code::io, cat("cannot write ", quote(path, 4096), ": it exists and is no regular file; give another name"));
  static std::atomic<unsigned> serial{0};
  std::string name = cat(path, ".tmp.", getpid(), ".", serial++);
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == ENOENT && path.find('/') != std::string::npos)
    return fail(Code::io, cat("cannot write ", quote(path, 4096), ": there is no folder ",
                              quote(path.substr(0, path.find_last_of('/')), 4096), "; make it, or give another place"));
  if (fd < 0)
    return cannot_write(path, errno);
  return Temporary{std::move(name), fd};
}

} // namespace

Result<void> check_output(const std::string &path) {
  K31_ASSIGN(const Temporary temporary, open_temporary(path));
  ::close(temporary.fd);
  ::unlink(temporary.name.c_str());
  return {};
}

Result<void> write_file(const std::string &path, std::span<const std::span<const std::byte>> parts) {
  K31_ASSIGN(const Temporary temporary, open_temporary(path));
  Result<void> result;
  for (std::span<const std::byte> part : parts)
    if (result)
      result = write_all(temporary.fd, part, path);
  if (::close(temporary.fd) != 0 && result)
    result = cannot_write(path, errno);
  if (result && ::rename(temporary.name.c_str(), path.c_str()) != 0)
    result = system_error("cannot rename " + quote(temporary.name, 4096) + " to " + quote(path, 4096), errno);
  if (!result)
    ::unlink(temporary.name.c_str());
  return result;
}

Result<void> write_file(const std::string &path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return write_file(path, std::span(&part, 1));
}

} // namespace k31
