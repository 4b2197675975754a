// Files: whole, reads at an offset, and writes that appear whole or not at all.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace k31 {

// A file opened for reads at any offset; safe to share between threads.
class File {
public:
  static Result<File> open(const std::string &path);
  File(File &&other) noexcept : path_(std::move(other.path_)), fd(std::exchange(other.fd, -1)), bytes(other.bytes) {}
  File &operator=(File &&other) noexcept {
    std::swap(path_, other.path_), std::swap(fd, other.fd), std::swap(bytes, other.bytes);
    return *this;
  }
  ~File();

  uint64_t size() const { return bytes; }
  const std::string &path() const { return path_; }

  // Fills `out` with the bytes from `offset` on; a file that ends before is an error.
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) const;

private:
  File() = default;
  std::string path_;
  int fd = -1;
  uint64_t bytes = 0;
};

// A whole file, read into memory at an address that is a multiple of 16: what becomes of the file later changes nothing here,
// which a map does not promise.
class FileBytes {
public:
  // At most `limit` bytes.
  static Result<FileBytes> read(const std::string &path, uint64_t limit);
  std::span<const std::byte> bytes() const { return {memory.get(), size}; }

private:
  FileBytes() = default;
  std::unique_ptr<std::byte[]> memory;
  uint64_t size = 0;
};

// A small text file, at most `limit` bytes.
Result<std::string> read_text(const std::string &path, uint64_t limit = uint64_t(1) << 30);

// Writes the parts one after the other to a temporary file beside `path`, then renames it: readers see the old file or the new.
Result<void> write_file(const std::string &path, std::span<const std::span<const std::byte>> parts);
Result<void> write_file(const std::string &path, std::string_view text);

// The refusal that write_file would give now, for what takes long to make. Leaves no file.
Result<void> check_output(const std::string &path);

// The one place where errors of the operating system become ours: "cannot open 'x': No such file or directory".
tl::unexpected<Error> system_error(const std::string &what, int error_number);

} // namespace k31
