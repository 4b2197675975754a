#include "runtime/host/image.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include <cerrno>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace k31::host {

static std::string loader_error() {
  const char *text = dlerror();
  return text ? text : "no reason given";
}

Result<Image> Image::open(std::span<const uint8_t> code) {
  Image image;
  image.fd = memfd_create("k31-kernels", MFD_CLOEXEC);
  if (image.fd < 0)
    return system_error("cannot create a memory file for the plan's kernels", errno);
  while (!code.empty()) {
    const ssize_t put = ::write(image.fd, code.data(), code.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return system_error("cannot copy the plan's kernels to a memory file", errno);
    code = code.subspan(static_cast<size_t>(put));
  }
  image.handle = dlopen(cat("/proc/self/fd/", image.fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!image.handle)
    return fail(Code::invalid_input,
                "the plan's kernels cannot be loaded: " + loader_error() + "; compile the plan again on this system");
  return image;
}

Image::~Image() {
  if (handle)
    dlclose(handle);
  if (fd >= 0)
    ::close(fd);
}

Result<KernelFunction> Image::find(const std::string &symbol) const {
  dlerror();
  void *at = dlsym(handle, symbol.c_str());
  if (!at)
    return fail(Code::invalid_input, "the image has no symbol " + quote(symbol) + "; the plan is wrong, compile it again");
  return reinterpret_cast<KernelFunction>(at);
}

} // namespace k31::host
