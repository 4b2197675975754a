// k31-e2e select: the indexer of a plan of one attention layer, at its last position. The caches are filled by hand; keys that
// point where the query of that position looks are planted at several depths, and the selected set is compared with scores in
// fp64. Keys of codes are compared by what these mean.
#include "runtime/arena_access.h"
#include "runtime/base/cat.h"
#include "runtime/engine/state_memory.h"
#include "runtime/schema/plan_generated.h"
#include "test/e2e/e2e.h"
#include "test/kernels/common/codes.h"
#include <algorithm>
#include <cstdio>
#include <random>

namespace k31::e2e {
namespace {

// What the launch of the indexer read and wrote, one row.
struct Seen {
  std::vector<float> q, w;
  std::vector<int32_t> selected;
};

template <class T> void take(std::vector<T> &to, std::span<const std::byte> from, size_t count) {
  to.resize(count);
  memcpy(to.data(), from.data(), count * sizeof(T));
}

class Selection {
public:
  explicit Selection(Session &session) : session(session), memory(*session.memory()), layout(engine::layout_of(session.plan())) {}

  Result<void> run() {
    positions = session.plan().model()->max_context();
    for (const engine::StateMember &m : layout.members) {
      K31_TRY(memory.fill(m.arena, m.offset, m.unit_bytes * m.units, {}));
      if (m.kind == engine::StateKind::index)
        index = m;
    }
    if (index.element != engine::Element::f32 && index.element != engine::Element::codes)
      return fail(Code::unsupported, "the plan has no index cache in fp32 or codes");
    dim = index.codes ? index.codes : uint32_t(index.unit_bytes / layout.block_tokens / 4);
    std::mt19937 random(4);
    std::normal_distribution<float> normal(0, 0.05f);
    keys.resize(size_t(positions) * dim);
    for (float &key : keys)
      key = normal(random);
    K31_TRY(write_keys(0, positions));
    K31_ASSIGN(Seen seen, decode());
    K31_TRY(compare(seen, "random keys"));

    // The best direction is that of one head: a head whose weight is negative does not look for anything.
    const uint32_t heads = uint32_t(seen.w.size());
    std::vector<float> best;
    double highest = 0;
    for (uint32_t h = 0; h < heads; ++h) {
      const std::vector<float> q(seen.q.begin() + h * dim, seen.q.begin() + (h + 1) * dim);
      if (const double found = score(seen, q.data()); found > highest)
        highest = found, best = q;
    }
    if (best.empty())
      return fail(Code::internal, "the query looks nowhere");
    std::vector<uint32_t> planted;
    for (const uint32_t depth : {0u, 1u, 10u, 25u, 50u, 75u, 90u, 99u})
      planted.push_back(uint32_t(uint64_t(positions - 1) * depth / 100));
    planted.push_back(positions - 2);
    for (const uint32_t position : planted) {
      std::copy(best.begin(), best.end(), keys.begin() + int64_t(position) * dim);
      K31_TRY(write_keys(position, position + 1));
    }
    K31_ASSIGN(seen, decode());
    K31_TRY(compare(seen, "planted keys"));
    for (const uint32_t position : planted)
      if (!std::binary_search(seen.selected.begin(), seen.selected.end(), int32_t(position)))
        return fail(Code::internal, cat("the key planted at ", position, " of ", positions, " is not selected"));
    std::printf("%zu planted keys of %u positions selected\n", planted.size(), positions);
    return {};
  }

private:
  // Block b is block b of the table. Codes: a block's rows, then their scales.
  uint64_t block_at(uint32_t block) const { return index.offset + block * index.unit_bytes; }
  uint64_t scale_at(uint32_t row) const { return uint64_t(layout.block_tokens) * dim + row * 4ull; } // in a block

  Result<void> write_keys(uint32_t begin, uint32_t end) {
    if (!index.codes)
      return memory.write(index.arena, index.offset + uint64_t(begin) * dim * 4,
                          std::as_bytes(std::span(keys).subspan(size_t(begin) * dim, size_t(end - begin) * dim)));
    std::vector<int8_t> codes(dim);
    for (uint32_t p = begin; p < end; ++p) {
      const std::span<float> key = std::span(keys).subspan(size_t(p) * dim, dim);
      float inverse = 0;
      const float scale = test::integer_scale_of(int(dim), [&](int i) { return key[size_t(i)]; }, inverse);
      for (uint32_t d = 0; d < dim; ++d) {
        codes[d] = int8_t(test::nearest_integer(key[d], inverse));
        key[d] = float(codes[d]) * scale;
      }
      const uint32_t row = p % layout.block_tokens;
      K31_TRY(
          memory.write(index.arena, block_at(p / layout.block_tokens) + uint64_t(row) * dim, std::as_bytes(std::span(codes))));
      K31_TRY(memory.write(index.arena, block_at(p / layout.block_tokens) + scale_at(row), std::as_bytes(std::span(&scale, 1))));
    }
    return {};
  }
  Result<void> read_last_key() {
    const std::span<float> key = std::span(keys).last(dim);
    if (!index.codes)
      return memory.read(index.arena, index.offset + uint64_t(positions - 1) * dim * 4, std::as_writable_bytes(key));
    const uint32_t row = (positions - 1) % layout.block_tokens;
    const uint64_t block = block_at((positions - 1) / layout.block_tokens);
    std::vector<int8_t> codes(dim);
    float scale = 0;
    K31_TRY(memory.read(index.arena, block + uint64_t(row) * dim, std::as_writable_bytes(std::span(codes))));
    K31_TRY(memory.read(index.arena, block + scale_at(row), std::as_writable_bytes(std::span(&scale, 1))));
    for (uint32_t d = 0; d < dim; ++d)
      key[d] = float(codes[d]) * scale;
    return {};
  }
  // One token at the last position.
  Result<Seen> decode() {
    Seen seen;
    uint32_t number = 0;
    const plan::Plan &plan = session.plan();
    while (plan.entries()->Get(number)->kind() != plan::EntryKind::decode)
      if (++number == plan.entries()->size())
        return fail(Code::unsupported, "the plan has no decode entry");
    const plan::Entry &entry = *plan.entries()->Get(number);
    session.observe([&](const plan::Launch &launch, std::span<const std::span<const std::byte>> args) {
      if (!plan.kernels()->Get(launch.kernel())->name()->string_view().starts_with("attn.index_select"))
        return;
      const size_t heads = args[1].size() / entry.rows() / 4;
      take(seen.q, args[0], heads * dim);
      take(seen.w, args[1], heads);
      take(seen.selected, args[7], args[7].size() / entry.rows() / 4);
    });
    std::vector<int32_t> table(positions / layout.block_tokens), row_segment(entry.rows(), -1);
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = int32_t(i);
    row_segment[0] = 0;
    const int32_t counts[] = {1, 1, 0, 0}, segments[] = {0, 1, int32_t(positions) - 1, 0, 0, 0};
    std::vector<NamedInput> inputs = {{"counts", std::as_bytes(std::span(counts))},
                                      {"segments", std::as_bytes(std::span(segments))},
                                      {"row_segment", std::as_bytes(std::span(row_segment))},
                                      {"block_table", std::as_bytes(std::span(table))}};
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::deque<std::vector<float>> streams;
    for (const plan::Binding *binding : *entry.inputs())
      if (const auto name = binding->name()->string_view(); name == "hidden" || name == "bank") {
        uint64_t count = 1;
        for (const uint64_t extent : *binding->shape())
          count *= extent;
        for (float &value : streams.emplace_back(count))
          value = normal(random);
        inputs.push_back({binding->name()->c_str(), std::as_bytes(std::span(streams.back()))});
      }
    K31_TRY(session.run(number, inputs, {}));
    session.observe({});
    if (seen.selected.empty())
      return fail(Code::unsupported, "the plan runs no attn.index_select");
    // The layer has written the key of its own position.
    K31_TRY(read_last_key());
    return seen;
  }

  // Without the two positive scales.
  double score(const Seen &seen, const float *key) const {
    double total = 0;
    for (size_t h = 0; h < seen.w.size(); ++h) {
      double dot = 0;
      for (uint32_t d = 0; d < dim; ++d)
        dot += double(seen.q[h * dim + d]) * key[d];
      total += seen.w[h] * std::max(dot, 0.0);
    }
    return total;
  }

  // Exactly top_k, ascending, and nothing left out that is better than what was taken, but for rounding.
  Result<void> compare(const Seen &seen, const char *what) const {
    std::vector<double> scores(positions);
    double largest = 0;
    for (uint32_t p = 0; p < positions; ++p) {
      scores[p] = score(seen, keys.data() + size_t(p) * dim);
      largest = std::max(largest, std::abs(scores[p]));
    }
    std::vector<bool> taken(positions);
    double lowest = INFINITY, highest = -INFINITY;
    for (size_t i = 0; i < seen.selected.size(); ++i) {
      const int32_t p = seen.selected[i];
      if (p < 0 || uint32_t(p) >= positions || (i && p <= seen.selected[i - 1]))
        return fail(Code::internal, cat(what, ": selected position ", i, " is ", p));
      taken[size_t(p)] = true;
      lowest = std::min(lowest, scores[size_t(p)]);
    }
    for (uint32_t p = 0; p < positions; ++p)
      if (!taken[p])
        highest = std::max(highest, scores[p]);
    std::printf("%s: %zu of %u selected, the lowest %.6g, the highest left out %.6g\n", what, seen.selected.size(), positions,
                lowest, highest);
    if (highest > lowest + 1e-5 * largest)
      return fail(Code::internal, cat(what, ": a key that was left out is better than a selected one"));
    return {};
  }

  Session &session;
  ArenaAccess &memory;
  engine::StateLayout layout;
  engine::StateMember index{};
  uint32_t positions = 0, dim = 0;
  std::vector<float> keys; // [positions, dim]
};

} // namespace

Result<void> select(const Options &options) {
  K31_ASSIGN(const auto session, open(options));
  return Selection(*session).run();
}

} // namespace k31::e2e
