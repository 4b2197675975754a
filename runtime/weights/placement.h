// Where the rows of a weight land: the arithmetic of plan::Layout, in one place for the check at Load and the stream at Bind.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstddef>
#include <cstdint>
#include <string>

namespace k31::weights {

// plan::Layout as numbers: of a whole stack as the plan has it, or of one rank's share.
struct Layout {
  uint64_t row_bytes, row_begin, row_count, byte_begin, byte_count, dest_row_bytes, group, group_stride, group_begin;

  Layout(const plan::Layout &l)
      : row_bytes(l.row_bytes()), row_begin(l.row_begin()), row_count(l.row_count()), byte_begin(l.byte_begin()),
        byte_count(l.byte_count()), dest_row_bytes(l.dest_row_bytes()), group(l.group()), group_stride(l.group_stride()),
        group_begin(l.group_begin()) {}
};

// What one rank holds of a stack: members [first, first + count), of each what the layout says. The first one goes to the stack's
// destination. Nothing is held when count or the layout's row_count or byte_count is 0.
struct Share {
  Layout layout;
  uint32_t first, count;

  bool empty() const { return count == 0 || layout.row_count == 0 || layout.byte_count == 0; }
};

// Of coordinate c of an axis with `ranks` ranks: coordinate 0 has what the plan says, the others what follows, as far as there
// is.
Share share_of(const plan::WeightStack &stack, uint32_t c, uint32_t ranks);

// Destination row of row r, counted from row_begin.
inline uint64_t dest_row(const Layout &l, uint64_t r) { return r / l.group * l.group_stride + l.group_begin + r % l.group; }

// Bytes from the member's destination to the end of its last row; false when they do not fit 64 bits. Wants group > 0 and
// row_count > 0, and group_stride >= group when there is more than one group: then the last row is the furthest one.
bool dest_extent(const Layout &layout, uint64_t *bytes);

// Rows from r on (at most `limit`) whose used bytes are one run both in the file and at the destination; at least 1.
uint64_t run_length(const Layout &layout, uint64_t r, uint64_t limit);

// Copies rows [r, r + count) of a member: `source` holds them whole, `member` is the member's destination.
void place_rows(const Layout &layout, uint64_t r, uint64_t count, const std::byte *source, std::byte *member);

// `height` pieces of `width` bytes, `source_pitch` apart in the source and `dest_pitch` apart at the destination.
struct Pieces {
  uint64_t source, source_pitch, dest, dest_pitch, width, height;
};

// What place_rows copies, as few such blocks: one for rows that stay together or are interleaved in whole groups. Offsets are
// from the front of `source` and of the member. Returns the rows, from r on, that the block holds; at least 1.
uint64_t next_pieces(const Layout &layout, uint64_t r, uint64_t count, Pieces *pieces);

// Bytes of one member in its file.
uint64_t member_bytes(const plan::WeightStack &stack);

// Name of member i of a stack.
std::string member_name(const plan::WeightStack &stack, uint32_t i);

} // namespace k31::weights
