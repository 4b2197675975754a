#include "codegen/Target.h"
#include <string>

using namespace llvm;

namespace k31 {

// Features that the levels of the x86-64 psABI may use, by LLVM's names; older ones follow from these.
static constexpr StringLiteral kV3[] = {"avx2", "bmi", "bmi2", "cmov", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt"};
static constexpr StringLiteral kV4[] = {"avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "bmi",   "bmi2",
                                        "cmov", "cx16",     "f16c",     "fma",      "lzcnt",   "movbe",    "popcnt"};
static constexpr HostLevel kHostLevels[] = {
    {"x86-64-v4", kV4, 64},
    {"x86-64-v3", kV3, 32},
};

static Error refuse(const std::string &message) { return createStringError(inconvertibleErrorCode(), message); }

Expected<const Target *> Target::find(StringRef name) {
  static const Target cpu("cpu", kHostLevels);
  static const Target hopper("sm_90a", {}); // H100, H200
  for (const Target *target : {&cpu, &hopper})
    if (target->name() == name)
      return target;
  return refuse("target '" + name.str() + "' is unknown; targets are cpu and sm_90a");
}

} // namespace k31
