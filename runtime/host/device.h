// The host as a device: its memory, its cores.
#pragma once
#include "runtime/device.h"

namespace k31::host {

Result<std::unique_ptr<Device>> open_device(int threads, comm::Communicator &communicator);

} // namespace k31::host
