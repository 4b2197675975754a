// NVRTC, NVIDIA's compiler as a library, opened when it is needed: k31c also runs where CUDA is not installed.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <utility>
#include <vector>

namespace k31 {

// A header that the program includes by this name.
using NvrtcHeader = std::pair<llvm::StringRef, llvm::StringRef>;

class Nvrtc {
public:
  // The library, opened once a process: the file that K31_NVRTC names, else libnvrtc.so.13 or .12 in $CUDA_HOME, in
  // /usr/local/cuda and on the loader's path. Or one line that says where it was looked for.
  static llvm::Expected<const Nvrtc *> open();

  int major() const { return majorVersion; }
  int minor() const { return minorVersion; }

  // One CUDA C++ source to a cubin for `architecture` ("sm_90a"); the error holds the first lines of the compiler's log.
  llvm::Expected<std::string> compile(llvm::StringRef source, llvm::StringRef name, llvm::StringRef architecture,
                                      llvm::ArrayRef<NvrtcHeader> headers) const;

private:
  struct Functions;
  Nvrtc() = default;
  const Functions *functions = nullptr;
  int majorVersion = 0, minorVersion = 0;
};

} // namespace k31
