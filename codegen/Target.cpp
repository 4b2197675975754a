#include "codegen/Target.h"
#include <string>

using namespace llvm;

namespace k31 {

// Features that the levels of the x86-64 psABI may use, by LLVM's names; older ones follow from these.
static constexpr StringLiteral kV3[] = {"avx2", "bmi", "bmi2", "cmov", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt"};
static constexpr StringLiteral kV4[] = {"avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "bmi",   "bmi2",
                                        "cmov", "cx16",     "f16c",     "fma",      "lzcnt",   "movbe",    "popcnt"};
static constexpr StringLiteral kV4Bf16[] = {"avx2",     "avx512bf16", "avx512bw", "avx512cd", "avx512dq", "avx512f",
                                            "avx512vl", "bmi",        "bmi2",     "cmov",     "cx16",     "f16c",
                                            "fma",      "lzcnt",      "movbe",    "popcnt"};
static constexpr StringLiteral kV4Amx[] = {"amx-bf16", "amx-tile", "avx2",     "avx512bf16", "avx512bw", "avx512cd",
                                           "avx512dq", "avx512f",  "avx512vl", "bmi",        "bmi2",     "cmov",
                                           "cx16",     "f16c",     "fma",      "lzcnt",      "movbe",    "popcnt"};
static constexpr HostLevel kHostLevels[] = {
    {"x86-64-v4-amx", "x86-64-v4", "+avx512bf16,+amx-tile,+amx-bf16", kV4Amx, 64, 2},
    {"x86-64-v4-bf16", "x86-64-v4", "+avx512bf16", kV4Bf16, 64, 1},
    {"x86-64-v4", "x86-64-v4", "", kV4, 64, 0},
    {"x86-64-v3", "x86-64-v3", "", kV3, 32, 0},
};

static Error refuse(const std::string &message) { return createStringError(inconvertibleErrorCode(), message); }

const Target::Speeds &Target::speeds() const {
  static constexpr Speeds host = {27e9, 27e9, 0.2e12, 5e-6, false};
  static constexpr Speeds hopper = {4.26e12, 7e12, 0.79e15, 2e-6, true};
  return isCuda() ? hopper : host;
}

Expected<const Target *> Target::find(StringRef name) {
  static const Target cpu("cpu", kHostLevels);
  static const Target hopper("sm_90a", {}); // H100, H200
  for (const Target *target : {&cpu, &hopper})
    if (target->name() == name)
      return target;
  return refuse("target '" + name.str() + "' is unknown; targets are cpu and sm_90a");
}

} // namespace k31
