// One host kernel as an LLVM module: specialised, joined with its region, optimised, as an object.
#pragma once
#include "codegen/HostBackend.h"
#include "llvm/Support/Error.h"

namespace k31 {

// The object file of one kernel at one level. `regionBitcode` holds k31_region_*, or nothing.
llvm::Expected<std::string> compileHostObject(const HostKernel &kernel, llvm::StringRef regionBitcode, const HostLevel &level);

// memcpy, memmove and memset, hidden in the image: an image is linked against no C library.
llvm::Expected<std::string> compileMemoryObject(const HostLevel &level);

// Objects by name to one shared object.
llvm::Expected<std::string> linkHostImage(llvm::ArrayRef<std::pair<std::string, std::string>> objects);

} // namespace k31
