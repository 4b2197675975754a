// One GPU as a device. CUDA_VISIBLE_DEVICES chooses which: the first that the driver shows is taken.
#pragma once
#include "runtime/device.h"

namespace k31::cuda {

// Refuses, in one line, when there is no driver, no GPU, or one of another architecture than sm_90a.
Result<std::unique_ptr<Device>> open_device(comm::Communicator &communicator);

} // namespace k31::cuda
