// What the processor and the operating system support, by the feature names of LLVM: "avx2", "avx512bf16".
#pragma once
#include <string_view>
#include <vector>

namespace k31 {

// False for a name that this build does not know. Asking for a feature of AMX asks the system for its registers too.
bool cpu_has(std::string_view feature);

// Every known feature that this machine has.
std::vector<std::string_view> cpu_features();

// Hardware threads that this process may use.
int cpu_threads();

} // namespace k31
