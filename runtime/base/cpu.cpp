#include "runtime/base/cpu.h"
#include <cstdint>
#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace k31 {

#if defined(__x86_64__)
namespace {

enum Register { eax, ebx, ecx, edx };

// What the operating system must save for a feature to be usable: bits of XCR0.
constexpr uint64_t kNone = 0, kAvx = 0x6, kAvx512 = 0xe6, kAmx = 0x60000;

struct Feature {
  std::string_view name;
  unsigned leaf, subleaf;
  Register where;
  unsigned bit;
  uint64_t saved;
};

// Intel SDM volume 2, CPUID.
constexpr Feature kFeatures[] = {
    {"cx8", 1, 0, edx, 8, kNone},
    {"cmov", 1, 0, edx, 15, kNone},
    {"mmx", 1, 0, edx, 23, kNone},
    {"fxsr", 1, 0, edx, 24, kNone},
    {"sse", 1, 0, edx, 25, kNone},
    {"sse2", 1, 0, edx, 26, kNone},
    {"sse3", 1, 0, ecx, 0, kNone},
    {"pclmul", 1, 0, ecx, 1, kNone},
    {"ssse3", 1, 0, ecx, 9, kNone},
    {"fma", 1, 0, ecx, 12, kAvx},
    {"cx16", 1, 0, ecx, 13, kNone},
    {"sse4.1", 1, 0, ecx, 19, kNone},
    {"sse4.2", 1, 0, ecx, 20, kNone},
    {"movbe", 1, 0, ecx, 22, kNone},
    {"popcnt", 1, 0, ecx, 23, kNone},
    {"aes", 1, 0, ecx, 25, kNone},
    {"crc32", 1, 0, ecx, 20, kNone},
    {"xsave", 1, 0, ecx, 26, kNone},
    {"avx", 1, 0, ecx, 28, kAvx},
    {"f16c", 1, 0, ecx, 29, kAvx},
    {"rdrnd", 1, 0, ecx, 30, kNone},
    {"fsgsbase", 7, 0, ebx, 0, kNone},
    {"bmi", 7, 0, ebx, 3, kNone},
    {"avx2", 7, 0, ebx, 5, kAvx},
    {"bmi2", 7, 0, ebx, 8, kNone},
    {"avx512f", 7, 0, ebx, 16, kAvx512},
    {"avx512dq", 7, 0, ebx, 17, kAvx512},
    {"rdseed", 7, 0, ebx, 18, kNone},
    {"adx", 7, 0, ebx, 19, kNone},
    {"avx512ifma", 7, 0, ebx, 21, kAvx512},
    {"clflushopt", 7, 0, ebx, 23, kNone},
    {"clwb", 7, 0, ebx, 24, kNone},
    {"avx512cd", 7, 0, ebx, 28, kAvx512},
    {"sha", 7, 0, ebx, 29, kNone},
    {"avx512bw", 7, 0, ebx, 30, kAvx512},
    {"avx512vl", 7, 0, ebx, 31, kAvx512},
    {"avx512vbmi", 7, 0, ecx, 1, kAvx512},
    {"avx512vbmi2", 7, 0, ecx, 6, kAvx512},
    {"gfni", 7, 0, ecx, 8, kNone},
    {"vaes", 7, 0, ecx, 9, kAvx},
    {"vpclmulqdq", 7, 0, ecx, 10, kAvx},
    {"avx512vnni", 7, 0, ecx, 11, kAvx512},
    {"avx512bitalg", 7, 0, ecx, 12, kAvx512},
    {"avx512vpopcntdq", 7, 0, ecx, 14, kAvx512},
    {"avx512vp2intersect", 7, 0, edx, 8, kAvx512},
    {"amx-bf16", 7, 0, edx, 22, kAmx},
    {"avx512fp16", 7, 0, edx, 23, kAvx512},
    {"amx-tile", 7, 0, edx, 24, kAmx},
    {"amx-int8", 7, 0, edx, 25, kAmx},
    {"avxvnni", 7, 1, eax, 4, kAvx},
    {"avx512bf16", 7, 1, eax, 5, kAvx512},
    {"avxifma", 7, 1, eax, 23, kAvx},
    {"avxvnniint8", 7, 1, edx, 4, kAvx},
    {"avxneconvert", 7, 1, edx, 5, kAvx},
    {"xsaveopt", 0xd, 1, eax, 0, kNone},
    {"xsavec", 0xd, 1, eax, 1, kNone},
    {"sahf", 0x80000001, 0, ecx, 0, kNone},
    {"lzcnt", 0x80000001, 0, ecx, 5, kNone},
    {"64bit", 0x80000001, 0, edx, 29, kNone},
};

// Register state that the operating system saves: XCR0, or nothing when XGETBV is not enabled.
uint64_t saved_state() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
    return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Linux gives the registers of AMX to processes that ask, once for all their threads.
bool amx_permitted() {
#if defined(__linux__)
  constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM
  static const bool permitted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return permitted;
#else
  return false;
#endif
}

bool present(const Feature &feature) {
  unsigned registers[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &registers[eax], &registers[ebx], &registers[ecx], &registers[edx]))
    return false;
  static const uint64_t saved = saved_state();
  return (registers[feature.where] >> feature.bit & 1) && (saved & feature.saved) == feature.saved &&
         (feature.saved != kAmx || amx_permitted());
}

} // namespace

bool cpu_has(std::string_view name) {
  for (const Feature &feature : kFeatures)
    if (feature.name == name)
      return present(feature);
  return false;
}

std::vector<std::string_view> cpu_features() {
  std::vector<std::string_view> names;
  for (const Feature &feature : kFeatures)
    if (present(feature))
      names.push_back(feature.name);
  return names;
}

#else

// Other processors: nothing beyond their baseline is claimed.
bool cpu_has(std::string_view) { return false; }
std::vector<std::string_view> cpu_features() { return {}; }

#endif

int cpu_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return 1;
  return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

} // namespace k31
