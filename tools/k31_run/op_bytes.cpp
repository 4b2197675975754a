#include "tools/k31_run/op_bytes.h"
#include <algorithm>
#include <cstring>
#include <string_view>

namespace k31::run {
namespace {

struct Reader {
  const plan::Plan &plan;
  const plan::Entry &entry;
  const plan::Launch &launch;
  std::span<const std::span<const std::byte>> args;
  const Live &live;

  const plan::Kernel &kernel() const { return *plan.kernels()->Get(launch.kernel()); }
  bool is(std::string_view op) const { return kernel().name()->string_view().starts_with(op); }
  plan::ArenaKind arena(uint32_t i) const { return plan.arenas()->Get(launch.args()->Get(i)->arena())->kind(); }
  plan::DType type(uint32_t i) const { return kernel().operands()->Get(i)->dtype(); }
  uint64_t columns(uint32_t i) const { return kernel().operands()->Get(i)->columns(); }
  // Bytes of one row; of a pool: of one block or slot.
  uint64_t row(uint32_t i) const { return columns(i) * (type(i) == plan::DType::bf16 ? 2 : type(i) == plan::DType::u8 ? 1 : 4); }

  // Parts of experts with at least one row: argument `offsets` holds where each expert's rows begin.
  double active_experts() const {
    for (uint32_t i = 0; i < args.size(); ++i) {
      const size_t experts = args[i].size() / 4;
      if (arena(i) == plan::ArenaKind::weights || type(i) != plan::DType::i32 || columns(i) != 1 || experts < 2)
        continue;
      size_t active = 0;
      for (size_t e = 0; e + 1 < experts; ++e) {
        int32_t ends[2];
        memcpy(ends, args[i].data() + e * 4, sizeof ends);
        active += ends[1] > ends[0];
      }
      return double(active) / double(experts - 1);
    }
    return 1;
  }

  uint64_t weights(uint32_t i) const {
    if (is("nn.embed"))
      return live.rows * row(i);
    if (is("moe.grouped_linear"))
      return uint64_t(double(args[i].size()) * active_experts());
    return args[i].size();
  }

  // Positions of a paged cache that the launch touches, over all segments.
  uint64_t positions() const {
    const uint64_t length = live.rows / std::max(live.segments, 1u), end = live.start + length;
    if (is("attn.append"))
      return live.rows;
    for (uint32_t i = 0; i < args.size(); ++i) // the chosen positions: each row reads its own
      if (is("attn.attend") && type(i) == plan::DType::i32 && arena(i) == plan::ArenaKind::activations)
        return std::min(live.rows * std::min<uint64_t>(columns(i), end), live.segments * end);
    return live.segments * end;
  }

  uint64_t rows(uint32_t i) const {
    const uint64_t capacity = args[i].size() / std::max<uint64_t>(row(i), 1), T = entry.rows(), L = entry.logit_rows();
    if (capacity == L && L != T)
      return live.logit_rows * row(i);
    if (capacity >= T && capacity % T == 0) // also k rows a token
      return live.rows * (capacity / T) * row(i);
    return std::min<uint64_t>(capacity >= T ? live.rows * row(i) : args[i].size(), args[i].size()); // a view, or no rows at all
  }

  uint64_t argument(uint32_t i) const {
    switch (arena(i)) {
    case plan::ArenaKind::weights:
      return weights(i);
    case plan::ArenaKind::cache:
      return positions() * row(i) / plan.state()->block_tokens();
    case plan::ArenaKind::state:
      return live.segments * row(i) * (launch.args()->Get(i)->access() == plan::Access::update ? 2 : 1);
    case plan::ArenaKind::workspace:
    case plan::ArenaKind::shared:
      return 0;
    default:
      return rows(i);
    }
  }
};

} // namespace

uint64_t bytes_moved(const plan::Plan &plan, const plan::Entry &entry, const plan::Launch &launch,
                     std::span<const std::span<const std::byte>> args, const Live &live) {
  const Reader reader{plan, entry, launch, args, live};
  uint64_t bytes = 0;
  for (uint32_t i = 0; reader.kernel().operands() && i < args.size(); ++i)
    bytes += reader.argument(i);
  return bytes;
}

} // namespace k31::run
