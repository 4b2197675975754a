#include "runtime/cuda/driver.h"
#include "runtime/base/cat.h"
#include <dlfcn.h>
#include <mutex>

namespace k31::cuda {

static constexpr const char *kLibrary = "libcuda.so.1";
static constexpr const char *kRemedy =
    "; run it on a machine with a GPU of the H100 or H200 kind, or compile the plan with --target cpu";

static Result<void> fill(Driver &driver) {
  void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(Code::unsupported,
                cat("the plan is for target sm_90a, which needs NVIDIA's driver, but ", kLibrary, " cannot be opened", kRemedy));
#define K31_CUDA_FUNCTION(name, symbol, parameters)                                                                              \
  if (!(driver.name = reinterpret_cast<Status(*) parameters>(dlsym(library, symbol))))                                           \
    return fail(Code::unsupported, cat(kLibrary, " has no function ", symbol, "; install a driver for CUDA 12 or later"));
#include "runtime/cuda/functions.h"
#undef K31_CUDA_FUNCTION
  if (const Status status = driver.init(0); status == kNoDevice)
    return fail(Code::unsupported, cat("the plan is for target sm_90a, but NVIDIA's driver shows no GPU", kRemedy));
  else if (status != 0)
    return cuda_error(driver, "the CUDA driver cannot start", status);
  return {};
}

Result<const Driver *> open_driver() {
  static Driver driver;
  static Result<void> state;
  static std::once_flag once;
  std::call_once(once, [] { state = fill(driver); });
  if (!state)
    return tl::unexpected(state.error());
  return &driver;
}

tl::unexpected<Error> cuda_error(const Driver &driver, const std::string &what, Status status) {
  const char *name = nullptr, *text = nullptr;
  driver.error_name(status, &name);
  driver.error_string(status, &text);
  const Code code = status == kOutOfMemory ? Code::out_of_memory : status == kNoDevice ? Code::unsupported : Code::internal;
  return fail(code, cat(what, ": ", name ? name : "error", " ", status, " (", text ? text : "no text", ")"));
}

} // namespace k31::cuda
