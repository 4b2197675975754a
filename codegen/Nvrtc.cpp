#include "codegen/Nvrtc.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

using namespace llvm;

namespace k31 {

namespace {
using Program = void *;
using Status = int; // nvrtcResult: 0 is success

constexpr StringLiteral kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }
} // namespace

// Declared here: NVRTC's header is not needed to build k31c.
struct Nvrtc::Functions {
  Status (*version)(int *, int *);
  Status (*create)(Program *, const char *source, const char *name, int count, const char *const *texts,
                   const char *const *names);
  Status (*compile)(Program, int count, const char *const *options);
  Status (*destroy)(Program *);
  Status (*cubinSize)(Program, size_t *);
  Status (*cubin)(Program, char *);
  Status (*logSize)(Program, size_t *);
  Status (*log)(Program, char *);
  const char *(*errorString)(Status);

  // The name of a symbol that the library lacks, or nothing.
  std::string load(void *library) {
    const std::pair<const char *, void **> symbols[] = {
        {"nvrtcVersion", reinterpret_cast<void **>(&version)},
        {"nvrtcCreateProgram", reinterpret_cast<void **>(&create)},
        {"nvrtcCompileProgram", reinterpret_cast<void **>(&compile)},
        {"nvrtcDestroyProgram", reinterpret_cast<void **>(&destroy)},
        {"nvrtcGetCUBINSize", reinterpret_cast<void **>(&cubinSize)},
        {"nvrtcGetCUBIN", reinterpret_cast<void **>(&cubin)},
        {"nvrtcGetProgramLogSize", reinterpret_cast<void **>(&logSize)},
        {"nvrtcGetProgramLog", reinterpret_cast<void **>(&log)},
        {"nvrtcGetErrorString", reinterpret_cast<void **>(&errorString)},
    };
    for (const auto &[name, address] : symbols)
      if (!(*address = dlsym(library, name)))
        return name;
    return "";
  }
};

// Paths in the order in which they are tried; a name without a folder goes to the loader.
static std::vector<std::string> candidates() {
  if (const char *file = std::getenv("K31_NVRTC"))
    return {file};
  std::vector<std::string> folders;
  if (const char *home = std::getenv("CUDA_HOME"); home && *home)
    folders.push_back(std::string(home) + "/lib64/");
  folders.push_back("/usr/local/cuda/lib64/");
  folders.push_back("");
  std::vector<std::string> paths;
  for (const std::string &folder : folders)
    for (StringRef name : kNames)
      paths.push_back(folder + name.str());
  return paths;
}

Expected<const Nvrtc *> Nvrtc::open() {
  static Nvrtc nvrtc;
  static Functions functions;
  static std::string error;
  static std::once_flag once;
  std::call_once(once, [] {
    void *library = nullptr;
    std::vector<std::string> paths = candidates();
    std::string path, reason; // of a file that is there but cannot be opened
    for (size_t i = 0; i < paths.size() && !library; ++i) {
      path = paths[i];
      library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (const char *text = library ? nullptr : dlerror(); text && reason.empty() && access(path.c_str(), F_OK) == 0)
        reason = std::string(" (") + text + ")";
    }
    if (!library) {
      error = "target sm_90a needs NVRTC, the library libnvrtc.so.13 or .12 of CUDA, and none was found in " + join(paths, ", ") +
              reason + "; install the CUDA toolkit, or name its folder by CUDA_HOME";
      return;
    }
    if (std::string missing = functions.load(library); !missing.empty())
      error = path + " has no function " + missing + ": it is no NVRTC of CUDA 12 or 13";
    else if (functions.version(&nvrtc.majorVersion, &nvrtc.minorVersion) != 0)
      error = path + " does not tell its version";
    nvrtc.functions = &functions;
  });
  if (!error.empty())
    return fail(error);
  return &nvrtc;
}

// The first lines of a log as one line.
static std::string shortened(StringRef log) {
  SmallVector<StringRef> lines;
  log.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::string text;
  for (StringRef line : ArrayRef(lines).take_front(6))
    text += (text.empty() ? "" : " | ") + line.trim().str();
  return text;
}

Expected<std::string> Nvrtc::compile(StringRef source, StringRef name, StringRef architecture,
                                     ArrayRef<NvrtcHeader> headers) const {
  const Functions &f = *functions;
  std::string text = source.str(), file = name.str(), arch = "--gpu-architecture=" + architecture.str();
  std::vector<std::string> storage;
  storage.reserve(headers.size() * 2);
  std::vector<const char *> names, texts;
  for (const auto &[headerName, headerText] : headers) {
    names.push_back(storage.emplace_back(headerName.str()).c_str());
    texts.push_back(storage.emplace_back(headerText.str()).c_str());
  }
  Program program = nullptr;
  if (Status status = f.create(&program, text.c_str(), file.c_str(), static_cast<int>(names.size()), texts.data(), names.data()))
    return fail("NVRTC cannot take " + name + ": " + f.errorString(status));
  // Kernels are for the device alone, without host headers. Warnings are errors of ours to fix, not the user's to read.
  const char *options[] = {arch.c_str(), "--std=c++20", "-default-device", "--disable-warnings"};
  const Status status = f.compile(program, std::size(options), options);
  std::string log, cubin;
  size_t size = 0;
  if (status != 0 && f.logSize(program, &size) == 0 && size > 1) {
    log.resize(size);
    f.log(program, log.data());
    log.resize(size - 1); // the terminating zero
  }
  bool made = status == 0 && f.cubinSize(program, &size) == 0 && size > 0;
  if (made) {
    cubin.resize(size);
    made = f.cubin(program, cubin.data()) == 0;
  }
  f.destroy(&program);
  if (status != 0)
    return fail("NVRTC refuses " + name + ": " + (log.empty() ? f.errorString(status) : shortened(log)));
  if (!made)
    return fail("NVRTC made no cubin of " + name + " for " + architecture);
  return cubin;
}

} // namespace k31
