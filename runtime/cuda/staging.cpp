#include "runtime/cuda/staging.h"
#include "runtime/plan/dtype.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace k31::cuda {

static constexpr Address kGap = 4096;   // inputs that are closer travel together
static constexpr size_t kMaxPorts = 64; // of one entry; Load has checked it

static Address address(const Port &port) { return reinterpret_cast<Address>(port.data); }

Result<void> Staging::allocate(const Driver &driver, const plan::Plan &plan, std::span<const Memory> arenas) {
  mirrors.resize(arenas.size());
  const auto add = [&](const plan::Binding &binding) {
    const Address begin = arenas[binding.arena()].address() + binding.offset();
    Mirror &mirror = mirrors[binding.arena()];
    mirror.begin = mirror.end ? std::min(mirror.begin, begin) : begin;
    mirror.end = std::max(mirror.end, begin + bytes_of(binding));
  };
  for (const plan::Entry *entry : *plan.entries()) {
    std::for_each(entry->inputs()->begin(), entry->inputs()->end(), [&](const plan::Binding *b) { add(*b); });
    std::for_each(entry->outputs()->begin(), entry->outputs()->end(), [&](const plan::Binding *b) { add(*b); });
  }
  for (Mirror &mirror : mirrors) {
    K31_ASSIGN(mirror.memory, Pinned::allocate(driver, mirror.end - mirror.begin));
  }
  return {};
}

std::byte *Staging::mirror(const Port &port) const {
  for (const Mirror &mirror : mirrors)
    if (address(port) >= mirror.begin && address(port) < mirror.end)
      return mirror.memory.bytes().data() + (address(port) - mirror.begin);
  return nullptr; // cannot be: every port was added
}

Result<void> Staging::upload(const Driver &driver, std::span<const Upload> inputs, Stream stream) const {
  struct Range {
    Address begin, end;
    const std::byte *source;
  };
  std::array<Range, kMaxPorts> ranges;
  size_t count = 0;
  for (const auto &[port, bytes] : inputs) {
    if (bytes.empty() || count == kMaxPorts)
      continue;
    std::byte *to = mirror(*port);
    memcpy(to, bytes.data(), bytes.size());
    ranges[count++] = {address(*port), address(*port) + bytes.size(), to};
  }
  std::sort(ranges.begin(), ranges.begin() + count, [](const Range &a, const Range &b) { return a.begin < b.begin; });
  for (size_t i = 0; i < count;) {
    Range joined = ranges[i++];
    // Neighbours of one mirror: as far apart there as on the GPU.
    while (i < count && ranges[i].begin < joined.end + kGap &&
           ranges[i].source - joined.source == static_cast<ptrdiff_t>(ranges[i].begin - joined.begin))
      joined.end = std::max(joined.end, ranges[i++].end);
    K31_CUDA(driver, copy_in(joined.begin, joined.source, joined.end - joined.begin, stream), "cannot copy inputs to the GPU");
  }
  return {};
}

Result<void> Staging::download(const Driver &driver, std::span<const Download> outputs, Stream stream) const {
  for (const auto &[port, bytes] : outputs)
    if (!bytes.empty())
      K31_CUDA(driver, copy_out(mirror(*port), address(*port), bytes.size(), stream), "cannot copy outputs from the GPU");
  return {};
}

void Staging::finish(std::span<const Download> outputs) const {
  for (const auto &[port, bytes] : outputs)
    if (!bytes.empty())
      memcpy(bytes.data(), mirror(*port), bytes.size());
}

} // namespace k31::cuda
