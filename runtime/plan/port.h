// A named tensor of an entry, in the memory of its device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace k31 {

struct Port {
  std::string_view name; // points into the plan
  std::byte *data;       // an address of the device
  uint64_t bytes;
};

} // namespace k31
