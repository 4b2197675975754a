#include "runtime/weights/placement.h"
#include "runtime/base/safetensors.h"
#include "runtime/schema/shares.h"
#include <algorithm>
#include <cstring>

namespace k31::weights {

bool dest_extent(const Layout &l, uint64_t *bytes) {
  const uint64_t last = l.row_count - 1;
  uint64_t row = 0, at = 0;
  return !__builtin_mul_overflow(last / l.group, l.group_stride, &row) && !__builtin_add_overflow(row, l.group_begin, &row) &&
         !__builtin_add_overflow(row, last % l.group, &row) && !__builtin_mul_overflow(row, l.dest_row_bytes, &at) &&
         !__builtin_add_overflow(at, l.byte_count, bytes);
}

uint64_t run_length(const Layout &l, uint64_t r, uint64_t limit) {
  if (l.byte_count != l.row_bytes || l.dest_row_bytes != l.row_bytes)
    return 1;
  if (l.group_stride == l.group)
    return limit; // groups follow each other
  return std::min(limit, l.group - r % l.group);
}

void place_rows(const Layout &l, uint64_t r, uint64_t count, const std::byte *source, std::byte *member) {
  while (count > 0) {
    const uint64_t rows = run_length(l, r, count);
    memcpy(member + dest_row(l, r) * l.dest_row_bytes, source + l.byte_begin, rows == 1 ? l.byte_count : rows * l.row_bytes);
    source += rows * l.row_bytes, r += rows, count -= rows;
  }
}

uint64_t next_pieces(const Layout &l, uint64_t r, uint64_t count, Pieces *pieces) {
  const bool whole = l.byte_count == l.row_bytes && l.dest_row_bytes == l.row_bytes; // rows follow each other
  const bool grouped = l.group_stride != l.group;
  const uint64_t dest = dest_row(l, r) * l.dest_row_bytes, group_bytes = l.group * l.row_bytes;
  if (whole && grouped && r % l.group == 0 && count >= l.group) {
    const uint64_t groups = count / l.group;
    *pieces = {0, group_bytes, dest, l.group_stride * l.dest_row_bytes, group_bytes, groups};
    return groups * l.group;
  }
  const uint64_t rows = grouped ? std::min(count, l.group - r % l.group) : count;
  if (whole)
    *pieces = {0, rows * l.row_bytes, dest, rows * l.row_bytes, rows * l.row_bytes, 1};
  else
    *pieces = {l.byte_begin, l.row_bytes, dest, l.dest_row_bytes, l.byte_count, rows};
  return rows;
}

Share share_of(const plan::WeightStack &stack, uint32_t c, uint32_t ranks) {
  Share share{*stack.layout(), 0, stack.files()->size()};
  if (!stack.shard() || ranks < 2)
    return share;
  Layout &l = share.layout;
  // [c * share, (c + 1) * share), cut at `end`.
  const auto part = [c](uint64_t &begin, uint64_t &count, uint64_t end) {
    begin = std::min(begin + c * count, end);
    count = std::min(count, end - begin);
  };
  switch (stack.shard()->of()) {
  case plan::ShardOf::members: {
    const auto each = uint32_t(plan::share_of(share.count, ranks));
    share.first = std::min(c * each, share.count);
    share.count = std::min(each, share.count - share.first);
    break;
  }
  case plan::ShardOf::rows:
    part(l.row_begin, l.row_count, member_bytes(stack) / l.row_bytes);
    break;
  case plan::ShardOf::columns:
    part(l.byte_begin, l.byte_count, l.row_bytes);
    break;
  }
  return share;
}

uint64_t member_bytes(const plan::WeightStack &stack) {
  uint64_t bytes = dtype_bits(stack.dtype()->string_view()) / 8;
  for (const uint64_t extent : *stack.shape())
    bytes *= extent;
  return bytes;
}

std::string member_name(const plan::WeightStack &stack, uint32_t i) {
  std::string name = stack.pattern()->str();
  if (stack.members() && stack.members()->size() > 0)
    name.replace(name.find("{}"), 2, std::to_string(stack.members()->Get(i)));
  return name;
}

} // namespace k31::weights
