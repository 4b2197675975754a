// The image: lld in this process, without a library, with bytes that depend on the objects alone.
#include "codegen/HostModule.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <filesystem>
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace k31 {

static Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

static Error writeFile(StringRef path, StringRef bytes) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (code)
    return fail(path + ": " + code.message());
  stream << bytes;
  stream.close();
  if (!stream.has_error())
    return Error::success();
  code = stream.error();
  stream.clear_error(); // one that is left ends the process
  return fail("cannot write " + path + ": " + code.message() + "; the folder for temporary files (TMPDIR) must have room");
}

static Expected<std::string> linkIn(StringRef folder, ArrayRef<std::pair<std::string, std::string>> objects) {
  SmallString<128> output(folder);
  sys::path::append(output, "image.so");
  std::vector<std::string> arguments = {"ld.lld",      "-shared",       "-nostdlib",   "--build-id=none",  "--no-undefined",
                                        "--strip-all", "--gc-sections", "--threads=1", "--hash-style=gnu", "-znoexecstack",
                                        "-zrelro",     "-znow",         "-o",          output.str().str()};
  uint64_t most = 64u << 10; // bytes of the image: its objects, and what it has beside them
  for (const auto &[name, bytes] : objects) {
    SmallString<128> path(folder);
    sys::path::append(path, name + ".o");
    if (Error error = writeFile(path, bytes))
      return error;
    arguments.push_back(path.str().str());
    most += bytes.size();
  }
  // lld writes through a map, where a full disk is a signal and no error.
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder.str(), unknown);
  if (!unknown && space.available < most)
    return fail("cannot link the host image: No space left on device: " + folder + " has " + Twine(space.available) +
                " bytes, the image takes at most " + Twine(most) + "; the folder for temporary files (TMPDIR) must have room");
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string messages;
  raw_string_ostream errors(messages);
  static std::mutex lld; // keeps its state in globals
  std::lock_guard lock(lld);
  lld::Result result = lld::lldMain(pointers, nulls(), errors, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    std::replace(messages.begin(), messages.end(), '\n', ' '); // one line
    return fail("linking the host image failed: " + StringRef(messages).trim() +
                "; the folder for temporary files (TMPDIR) must have room for the image");
  }
  auto image = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!image)
    return fail(output + ": " + image.getError().message());
  return (*image)->getBuffer().str();
}

Expected<std::string> linkHostImage(ArrayRef<std::pair<std::string, std::string>> objects) {
  SmallString<128> folder;
  if (std::error_code code = sys::fs::createUniqueDirectory("k31-link", folder))
    return fail("cannot make a folder for temporary files: " + code.message() + "; name one that can be written by TMPDIR");
  Expected<std::string> image = linkIn(folder, objects);
  sys::fs::remove_directories(folder);
  return image;
}

} // namespace k31
