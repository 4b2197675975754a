// Where the rows of a weight land: the arithmetic of plan::Layout, in one place for the check at Load and the stream at Bind.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstddef>
#include <cstdint>
#include <string>

namespace k31::weights {

// Destination row of row r, counted from row_begin.
inline uint64_t dest_row(const plan::Layout &l, uint64_t r) {
  return r / l.group() * l.group_stride() + l.group_begin() + r % l.group();
}

// Bytes from the member's destination to the end of its last row; false when they do not fit 64 bits. Wants group > 0 and
// row_count > 0, and group_stride >= group when there is more than one group: then the last row is the furthest one.
bool dest_extent(const plan::Layout &layout, uint64_t *bytes);

// Rows from r on (at most `limit`) whose used bytes are one run both in the file and at the destination; at least 1.
uint64_t run_length(const plan::Layout &layout, uint64_t r, uint64_t limit);

// Copies rows [r, r + count) of a member: `source` holds them whole, `member` is the member's destination.
void place_rows(const plan::Layout &layout, uint64_t r, uint64_t count, const std::byte *source, std::byte *member);

// `height` pieces of `width` bytes, `source_pitch` apart in the source and `dest_pitch` apart at the destination.
struct Pieces {
  uint64_t source, source_pitch, dest, dest_pitch, width, height;
};

// What place_rows copies, as few such blocks: one for rows that stay together or are interleaved in whole groups. Offsets are
// from the front of `source` and of the member. Returns the rows, from r on, that the block holds; at least 1.
uint64_t next_pieces(const plan::Layout &layout, uint64_t r, uint64_t count, Pieces *pieces);

// Name of member i of a stack.
std::string member_name(const plan::WeightStack &stack, uint32_t i);

} // namespace k31::weights
