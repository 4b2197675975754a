// Meshes for a plan that is too large for its own: first by arithmetic on the shares of the plan that was made, then tried.
#include "runtime/base/cat.h"
#include "runtime/schema/shares.h"
#include "tools/k31c/planning.h"
#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace k31::tool {
namespace {

constexpr int kAdvice = 3, kTries = 5;
constexpr uint64_t kUsualHost = 8; // ranks of a host where the options name none

uint64_t bytesOf(const plan::Plan &plan, const plan::WeightStack &stack) {
  return uint64_t(plan::held_members(*plan.mesh(), stack)) * stack.layout()->row_count() * stack.layout()->byte_count();
}

// What a rank holds by what divides it.
struct Held {
  uint64_t byHeads = 0, byExperts = 0, whole = 0; // weights, of all stages
  uint64_t cache = 0, state = 0, rest = 0;
};

Held heldBy(const plan::Plan &plan) {
  Held held;
  const bool alone = plan.mesh()->tp() * plan.mesh()->ep() == 1; // nothing is shared out yet: by names, and at best
  for (const plan::WeightStack *stack : *plan.weights()) {
    const plan::Shard *shard = stack->shard();
    const bool routed = stack->pattern()->str().find(".experts.") != std::string::npos;
    (alone                                 ? (routed ? held.byExperts : held.byHeads)
     : !shard                              ? held.whole
     : shard->axis() == plan::MeshAxis::ep ? held.byExperts
                                           : held.byHeads) += bytesOf(plan, *stack);
  }
  for (const plan::Arena *arena : *plan.arenas())
    if (arena->kind() != plan::ArenaKind::weights)
      (arena->kind() == plan::ArenaKind::cache   ? held.cache
       : arena->kind() == plan::ArenaKind::state ? held.state
                                                 : held.rest) += arena->bytes();
  held.rest += plan.reserve();
  return held;
}

struct Candidate {
  uint64_t tp, dp, ep, pp, node, ranks, estimate;

  std::string text() const {
    std::string out = cat("tp=", tp);
    if (dp != std::max<uint64_t>(1, ep / tp)) // else left out, as in --mesh
      out += cat(",dp=", dp);
    out += cat(",ep=", ep);
    if (pp > 1)
      out += cat(",pp=", pp);
    return out + cat(",node=", node);
  }
};

// Larger ones whose groups nest, the fewest ranks first; of equally many, more expert ranks before more stages.
std::vector<Candidate> candidates(const plan::Plan &plan, uint64_t limit) {
  const plan::Mesh &m = *plan.mesh();
  const Held held = heldBy(plan);
  const uint64_t ranks = uint64_t(m.tp()) * m.dp() * m.pp(), host = ranks > 1 ? m.node() : kUsualHost;
  std::vector<Candidate> out;
  for (uint64_t tp = m.tp(); tp <= std::max<uint64_t>(m.tp(), host); tp *= 2)
    for (uint64_t ep = std::max<uint64_t>(m.ep(), tp); ep <= 64 * std::max<uint64_t>(m.ep(), tp); ep *= 2)
      for (uint64_t pp = m.pp(); pp <= 4 * m.pp(); pp *= 2) {
        Candidate c{tp, std::max<uint64_t>(m.dp(), ep / tp), ep, pp, host, 0, 0};
        c.ranks = c.tp * c.dp * c.pp;
        c.node = std::gcd(c.ranks, host);
        if (c.ranks <= ranks || (c.tp * c.dp) % ep || ep % tp || ep > c.ranks)
          continue;
        c.estimate = (held.byHeads * m.tp() / tp + held.byExperts * m.ep() / ep + held.whole) / pp + held.cache * m.pp() / pp +
                     held.state * m.tp() / tp * m.pp() / pp + held.rest;
        if (c.estimate <= limit)
          out.push_back(c);
      }
  std::sort(out.begin(), out.end(), [](const Candidate &a, const Candidate &b) {
    return std::tuple(a.ranks, a.pp, a.tp, a.ep) < std::tuple(b.ranks, b.pp, b.tp, b.ep);
  });
  return out;
}

} // namespace

uint64_t bytesHeldTwice(const plan::Plan &plan) {
  std::set<std::string> shared; // names of which a rank holds a share
  for (const plan::WeightStack *stack : *plan.weights())
    if (stack->shard())
      shared.insert(stack->pattern()->str());
  uint64_t bytes = 0;
  for (const plan::WeightStack *stack : *plan.weights())
    if (!stack->shard() && shared.contains(stack->pattern()->str()))
      bytes += bytesOf(plan, *stack);
  return bytes;
}

std::string meshAdvice(Planning &planning, const CompileOptions &options, const plan::Plan &plan, uint64_t limit) {
  std::string advice;
  int found = 0, tried = 0;
  for (const Candidate &c : candidates(plan, limit)) {
    if (found == kAdvice || tried == kTries)
      break;
    ++tried;
    CompileOptions other = options;
    other.mesh = c.text();
    const std::optional<uint64_t> arenas = planning.arenaBytes(other);
    if (!arenas || *arenas + plan.reserve() > limit)
      continue;
    ++found;
    advice += cat("; --mesh ", other.mesh, " fits: ", c.ranks, " ranks of ", *arenas + plan.reserve(), " bytes");
  }
  return advice;
}

} // namespace k31::tool
