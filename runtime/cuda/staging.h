// Inputs and outputs of runs on their way between the caller's memory and the GPU.
//
// Every arena that holds ports has a mirror in pinned memory, and a tensor travels over its own place there. Inputs that lie
// close to each other become one copy: what is between them is dead before a run.
#pragma once
#include "runtime/cuda/memory.h"
#include "runtime/device.h"
#include <vector>

namespace k31::cuda {

class Staging {
public:
  // Room for the ports of all entries.
  Result<void> allocate(const Driver &driver, const plan::Plan &plan, std::span<const Memory> arenas);

  Result<void> upload(const Driver &driver, std::span<const Upload> inputs, Stream stream) const;
  // Starts the copies; finish() hands the bytes to the caller once the stream has done them.
  Result<void> download(const Driver &driver, std::span<const Download> outputs, Stream stream) const;
  void finish(std::span<const Download> outputs) const;

private:
  std::byte *mirror(const Port &port) const;

  struct Mirror {
    Address begin = 0, end = 0; // of the arena's ports on the GPU
    Pinned memory;
  };
  std::vector<Mirror> mirrors; // one an arena
};

} // namespace k31::cuda
