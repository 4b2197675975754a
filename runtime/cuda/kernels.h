// The plan's kernels on the GPU: one module an image.
#pragma once
#include "runtime/cuda/driver.h"
#include "runtime/schema/plan_generated.h"
#include <map>
#include <vector>

namespace k31::cuda {

class Kernels {
public:
  explicit Kernels(const Driver &driver) : driver(driver) {}
  Kernels(const Kernels &) = delete;
  ~Kernels();

  // Loads the first image of each kernel that is for `target`. Kernels that use much shared memory get leave to do so.
  Result<void> load(const plan::Plan &plan, std::string_view target);

  Function function(uint32_t kernel) const { return functions[kernel]; } // by index into Plan.kernels

private:
  Result<Module> module(const plan::Plan &plan, uint32_t image);

  const Driver &driver;
  std::map<uint32_t, Module> modules; // by index into Plan.images
  std::vector<Function> functions;
};

} // namespace k31::cuda
