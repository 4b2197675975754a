// No byte of an arena belongs to two weights of one rank: stages of a pipeline are other ranks. Members may lie between each
// other's rows (gate and up, in groups), so their ranges may cross; then the pattern in which their rows repeat must keep them
// apart.
#include "runtime/plan/check.h"
#include "runtime/schema/shares.h"
#include "runtime/weights/placement.h"
#include <algorithm>
#include <array>
#include <tuple>

namespace k31::check {
namespace {

// Members that lie between each other's rows at one place; the widest real pattern has two.
constexpr size_t kMaxInterleaved = 64;

struct Place {
  uint32_t stage, arena, stack, member;
  uint64_t begin, end; // from the first byte to past the last one
};

// All bytes of a member are in [begin + k * pitch, + run) for whole k. A pitch of 0: one run, so that any pitch will do.
struct Pattern {
  uint64_t pitch, run;
};

// By rows, and by groups of rows.
std::array<Pattern, 2> patterns(const plan::Layout &l) {
  const uint64_t pitch = l.dest_row_bytes(), rows = std::min(l.group(), l.row_count());
  return {Pattern{l.row_count() > 1 ? pitch : 0, l.byte_count()},
          Pattern{l.row_count() > l.group() ? l.group_stride() * pitch : 0, (rows - 1) * pitch + l.byte_count()}};
}

bool apart(uint64_t begin_a, const Pattern &a, uint64_t begin_b, const Pattern &b) {
  if (a.pitch != b.pitch && a.pitch != 0 && b.pitch != 0)
    return false;
  const uint64_t pitch = std::max(a.pitch, b.pitch);
  if (pitch == 0)
    return false; // two runs that cross
  const uint64_t distance = (begin_b - begin_a) % pitch;
  return a.run <= distance && b.run <= pitch - distance;
}

struct Sweep {
  const plan::Plan &plan;

  const plan::WeightStack &stack(const Place &place) const { return *plan.weights()->Get(place.stack); }
  std::string name(const Place &place) const { return quote(weights::member_name(stack(place), place.member)); }

  // Both have bytes at or behind b.begin, and a.begin <= b.begin.
  bool disjoint(const Place &a, const Place &b) const {
    for (const Pattern &x : patterns(*stack(a).layout()))
      for (const Pattern &y : patterns(*stack(b).layout()))
        if (apart(a.begin, x, b.begin, y))
          return true;
    return false;
  }

  std::vector<Place> places() const {
    std::vector<Place> list;
    for (uint32_t s = 0; s < plan.weights()->size(); ++s) {
      const plan::WeightStack &w = *plan.weights()->Get(s);
      uint64_t extent = 0;
      weights::dest_extent(*w.layout(), &extent); // checked before
      for (uint32_t m = 0; m < plan::held_members(*plan.mesh(), w); ++m) {
        const uint64_t dest = w.dest() + m * w.stride();
        list.push_back(
            {w.stage(), w.arena(), s, m, dest + w.layout()->group_begin() * w.layout()->dest_row_bytes(), dest + extent});
      }
    }
    std::sort(list.begin(), list.end(), [](const Place &a, const Place &b) {
      return std::tuple(a.stage, a.arena, a.begin, a.end) < std::tuple(b.stage, b.arena, b.begin, b.end);
    });
    return list;
  }

  Result<void> run() const {
    std::vector<Place> open; // those that may cross the next one
    for (const Place &next : places()) {
      std::erase_if(open, [&](const Place &p) { return p.stage != next.stage || p.arena != next.arena || p.end <= next.begin; });
      for (const Place &other : open)
        if (!disjoint(other, next))
          return refuse(cat("the weights ", name(other), " and ", name(next), " are placed on the same bytes: ", other.begin,
                            " to ", other.end, " and ", next.begin, " to ", next.end));
      if (open.size() == kMaxInterleaved)
        return refuse(cat("more than ", kMaxInterleaved, " weights lie between each other's rows at byte ", next.begin, ", ",
                          name(next), " among them"));
      open.push_back(next);
    }
    return {};
  }
};

} // namespace

Result<void> overlaps(const plan::Plan &plan) { return Sweep{plan}.run(); }

} // namespace k31::check
