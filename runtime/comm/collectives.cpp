#include "runtime/comm/collectives.h"
#include "runtime/base/cat.h"
#include "runtime/plan/dtype.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace k31::comm {
namespace {

// Up to here every rank gets all addends and adds them itself: one exchange instead of two.
constexpr size_t kSmall = 64u << 10;

constexpr size_t kBlock = 4096; // elements that are summed at a time, in fp32 on the stack

float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return uint16_t(bits >> 16 | 0x40); // NaN stays one
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

struct Bf16 {
  using Sum = float;
  uint16_t bits;
  operator float() const { return from_bf16(bits); }
  static Bf16 round(float sum) { return {to_bf16(sum)}; }
};
struct F32 {
  using Sum = float;
  float value;
  operator float() const { return value; }
  static F32 round(float sum) { return {sum}; }
};
struct I32 {
  using Sum = uint32_t; // wraps
  uint32_t value;
  operator uint32_t() const { return value; }
  static I32 round(uint32_t sum) { return {sum}; }
};

// out[i] = sum over r of pieces[r * count + i], in the order of r.
template <class T> void add(const std::byte *pieces, uint32_t ranks, size_t count, std::byte *out) {
  typename T::Sum sums[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    for (uint32_t r = 0; r < ranks; ++r) {
      const auto *from = reinterpret_cast<const T *>(pieces) + r * count + begin;
      if (r == 0)
        for (size_t i = 0; i < n; ++i)
          sums[i] = from[i];
      else
        for (size_t i = 0; i < n; ++i)
          sums[i] += from[i];
    }
    auto *to = reinterpret_cast<T *>(out) + begin;
    for (size_t i = 0; i < n; ++i)
      to[i] = T::round(sums[i]);
  }
}

void add(plan::DType type, const std::byte *pieces, uint32_t ranks, size_t count, std::byte *out) {
  switch (type) {
  case plan::DType::f32:
    return add<F32>(pieces, ranks, count, out);
  case plan::DType::bf16:
    return add<Bf16>(pieces, ranks, count, out);
  default:
    return add<I32>(pieces, ranks, count, out);
  }
}

// Notes the same number of bytes for each other rank.
void to_each(const Group &group, uint64_t bytes, Traffic &traffic) {
  for (uint32_t r = 0; r < group.size(); ++r)
    if (r != group.rank())
      traffic.add(group.across(r), bytes, bytes);
}

struct Reducer {
  Group &group;
  plan::DType type;
  std::span<std::byte> scratch;
  Traffic &traffic;
  size_t element = bytes_of(type);

  // Every rank gets all addends.
  Result<void> small(const std::byte *source, size_t count, std::byte *dest) const {
    const size_t step = scratch.size() / (group.size() * element);
    to_each(group, count * element, traffic);
    for (size_t at = 0; at < count; at += step) {
      const size_t n = std::min(step, count - at);
      const std::span all = scratch.first(n * element * group.size());
      K31_TRY(group.all_gather({source + at * element, n * element}, all));
      add(type, all.data(), group.size(), n, dest + at * element);
    }
    return {};
  }

  // Each rank adds one piece of the tensor, then the pieces are gathered. `count` is a multiple of the group's size.
  Result<void> large(const std::byte *source, size_t count, std::byte *dest) const {
    const uint32_t ranks = group.size();
    const size_t most = scratch.size() / ((ranks + 1) * element); // of one piece
    to_each(group, 2 * (count / ranks) * element, traffic);       // to be summed, and sums
    for (size_t at = 0; at < count;) {
      const size_t n = std::min(most, (count - at) / ranks);
      const std::span pieces = scratch.first(n * element * ranks), sum = scratch.subspan(pieces.size(), n * element);
      K31_TRY(group.all_to_all({source + at * element, pieces.size()}, pieces));
      add(type, pieces.data(), ranks, n, sum.data());
      K31_TRY(group.all_gather(sum, {dest + at * element, pieces.size()}));
      at += n * ranks;
    }
    return {};
  }

  Result<void> all_reduce(const std::byte *source, size_t count, std::byte *dest) const {
    const size_t even = count * element <= kSmall ? 0 : count / group.size() * group.size();
    K31_TRY(large(source, even, dest));
    return small(source + even * element, count - even, dest + even * element);
  }

  // Piece i of the source, summed, is rank i's destination.
  Result<void> scatter(const std::byte *source, size_t count, std::byte *dest) const {
    const uint32_t ranks = group.size();
    const size_t piece = count / ranks, step = scratch.size() / (2 * ranks * element);
    to_each(group, piece * element, traffic);
    for (size_t at = 0; at < piece; at += step) {
      const size_t n = std::min(step, piece - at), bytes = n * element;
      const std::span mine = scratch.first(bytes * ranks), theirs = scratch.subspan(mine.size(), mine.size());
      for (uint32_t r = 0; r < ranks; ++r)
        memcpy(mine.data() + r * bytes, source + (r * piece + at) * element, bytes);
      K31_TRY(group.all_to_all(mine, theirs));
      add(type, theirs.data(), ranks, n, dest + at * element);
    }
    return {};
  }
};

// Pieces of which each holds `live` units, at most as many as it has room for.
Result<void> exchange(const plan::Collective &c, Group &group, const Operands &o, size_t bytes, std::span<std::byte> scratch,
                      Traffic &traffic) {
  const uint64_t piece = bytes / group.size();
  if (!o.live) {
    to_each(group, piece, traffic);
    return group.all_to_all({o.source, bytes}, {o.dest, bytes});
  }
  const std::span live(reinterpret_cast<uint64_t *>(scratch.data()), group.size()); // check_collective() refuses larger groups
  for (uint32_t r = 0; r < group.size(); ++r) {
    if (o.live[r] < 0 || uint64_t(o.live[r]) > piece / c.live_unit())
      return fail(Code::internal, cat(plan::EnumNameCollectiveOp(c.op()), " over ", plan::EnumNameMeshAxis(c.axis()), ": ",
                                      o.live[r], " units of ", c.live_unit(), " bytes in a piece of ", piece, " bytes for rank ",
                                      r, "; the kernel before it is wrong"));
    live[r] = uint64_t(o.live[r]) * c.live_unit();
    if (r != group.rank())
      traffic.add(group.across(r), piece, live[r]);
  }
  return group.exchange({o.source, bytes}, {o.dest, bytes}, live);
}

bool sums(plan::CollectiveOp op) { return op == plan::CollectiveOp::all_reduce || op == plan::CollectiveOp::reduce_scatter; }

} // namespace

Result<void> check_collective(const plan::Collective &c, const Group &group) {
  const std::string name = cat("collective ", plan::EnumNameCollectiveOp(c.op()), " over ", plan::EnumNameMeshAxis(c.axis()),
                               c.label() ? " " + quote(c.label()->string_view()) : std::string());
  if (sums(c.op()) && c.dtype() == plan::DType::u8)
    return fail(Code::invalid_input, name + " sums elements of type u8; the plan is wrong, compile it again");
  if (group.size() > kScratch / 64)
    return fail(Code::unsupported, cat(name, " has a group of ", group.size(), " ranks, expected at most ", kScratch / 64));
  return {};
}

Result<void> perform(const plan::Collective &c, Group &group, const Operands &operands, std::span<std::byte> scratch,
                     Traffic &traffic) {
  const auto &[source, dest, live] = operands;
  const size_t bytes = c.count() * bytes_of(c.dtype());
  const Reducer reducer{group, c.dtype(), scratch, traffic};
  ++traffic.calls;
  switch (c.op()) {
  case plan::CollectiveOp::all_reduce:
    return reducer.all_reduce(source, c.count(), dest);
  case plan::CollectiveOp::reduce_scatter:
    return reducer.scatter(source, c.count(), dest);
  case plan::CollectiveOp::all_gather:
    to_each(group, bytes, traffic);
    return group.all_gather({source, bytes}, {dest, bytes * group.size()});
  case plan::CollectiveOp::broadcast:
    if (group.rank() == 0 && source != dest)
      memmove(dest, source, bytes);
    if (group.rank() == 0)
      to_each(group, bytes, traffic);
    return group.broadcast({dest, bytes}, 0);
  case plan::CollectiveOp::dispatch:
  case plan::CollectiveOp::combine:
    return exchange(c, group, operands, bytes, scratch, traffic);
  case plan::CollectiveOp::send:
    traffic.add(group.across(c.peer()), bytes, bytes);
    return group.send({source, bytes}, c.peer());
  case plan::CollectiveOp::recv:
    return group.receive({dest, bytes}, c.peer());
  }
  return {};
}

Result<uint64_t> largest(Group &group, uint64_t mine) {
  std::vector<uint64_t> all(group.size());
  K31_TRY(group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  return *std::max_element(all.begin(), all.end());
}

Result<void> share(Group &group, std::vector<std::byte> &bytes, uint32_t root) {
  uint64_t size = bytes.size();
  K31_TRY(group.broadcast(std::as_writable_bytes(std::span(&size, 1)), root));
  bytes.resize(size);
  return group.broadcast(bytes, root);
}

} // namespace k31::comm
