// Host memory in the layout of the arenas, for the observers of launches: arguments are copied from the GPU and, where an
// observer may have changed them, back. Pages that nobody touches take no memory.
#pragma once
#include "runtime/cuda/memory.h"
#include "runtime/schema/plan_generated.h"
#include "runtime/session.h"
#include <span>
#include <vector>

namespace k31::cuda {

class Mirror {
public:
  Mirror() = default;
  Mirror(const Mirror &) = delete;
  ~Mirror();

  Result<void> reserve(const Driver &driver, const plan::Plan &plan, std::span<const Memory> arenas);
  bool reserved() const { return !bases.empty(); }

  // The launch's arguments; those that `shown` leaves out, weights and shared areas hold zeros.
  std::span<const std::span<const std::byte>> take(const plan::Launch &launch, Shown shown, Stream stream, Result<void> &result);
  Result<void> give_back(const plan::Launch &launch, Shown shown, Stream stream) const;

private:
  bool copied(const plan::Launch &launch, uint32_t argument, Shown shown) const;

  const Driver *driver = nullptr;
  const plan::Plan *plan = nullptr;
  std::span<const Memory> arenas;
  std::vector<std::byte *> bases;
  std::vector<std::span<const std::byte>> args;
};

} // namespace k31::cuda
