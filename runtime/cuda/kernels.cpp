#include "runtime/cuda/kernels.h"
#include "runtime/base/cat.h"
#include <algorithm>

namespace k31::cuda {

static constexpr uint32_t kDefaultShared = 48u << 10; // dynamic shared memory that needs no leave

Kernels::~Kernels() {
  for (const auto &[image, module] : modules)
    driver.module_unload(module);
}

Result<Module> Kernels::module(const plan::Plan &plan, uint32_t image) {
  if (const auto known = modules.find(image); known != modules.end())
    return known->second;
  Module module = nullptr;
  K31_CUDA(driver, module_load(&module, plan.images()->Get(image)->code()->data()),
           cat("image ", image, " of the plan cannot be loaded on this GPU"));
  modules.emplace(image, module);
  return module;
}

Result<void> Kernels::load(const plan::Plan &plan, std::string_view target) {
  std::vector<uint32_t> shared(plan.kernels()->size(), 0); // the most that a launch asks for
  for (const plan::Entry *entry : *plan.entries())
    for (uint32_t i = 0; i < entry->commands()->size(); ++i)
      if (entry->commands_type()->GetEnum<plan::Command>(i) == plan::Command::Launch) {
        const plan::Launch &launch = *entry->commands()->GetAs<plan::Launch>(i);
        shared[launch.kernel()] = std::max(shared[launch.kernel()], launch.smem());
      }
  for (uint32_t k = 0; k < plan.kernels()->size(); ++k) {
    const plan::Kernel &kernel = *plan.kernels()->Get(k);
    const std::string name = "kernel " + quote(kernel.name()->str());
    const auto fits = [&](uint32_t image) { return plan.images()->Get(image)->target()->string_view() == target; };
    const auto chosen = std::find_if(kernel.images()->begin(), kernel.images()->end(), fits);
    if (chosen == kernel.images()->end())
      return fail(Code::invalid_input, cat("no image of ", name, " is for ", target, "; the plan is wrong, compile it again"));
    K31_ASSIGN(const Module loaded, module(plan, *chosen));
    Function function = nullptr;
    K31_CUDA(driver, module_function(&function, loaded, kernel.symbol()->c_str()),
             cat(name, ": the image has no symbol ", quote(kernel.symbol()->str())));
    if (shared[k] > kDefaultShared)
      K31_CUDA(driver, function_set(function, kMaxDynamicShared, static_cast<int>(shared[k])),
               cat(name, " asks for ", shared[k], " bytes of shared memory"));
    functions.push_back(function);
  }
  return {};
}

} // namespace k31::cuda
