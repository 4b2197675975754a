// A model in plain C++ behind the engine's executor. The next id is a hash of all earlier ids, read back from the four kinds of
// caches of a real plan: rows of two paged caches, a recurrent state and a window of the last tokens. Each one that is missing,
// of another sequence or of another boundary gives other ids, and NaN in one gives none. With a depth above 1 outputs hold
// rubbish until they are fetched. The model also checks every rule of the entry contract.
#pragma once
#include "runtime/engine/executor.h"
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace k31::engine::test {

inline uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ h >> 29;
}

// Values of the caches are small integers in fp32.
inline float index_key(int32_t id) { return float(mix(uint64_t(id), 3) & 0xffff); }
inline uint64_t window_hash(const std::array<float, 3> &window) {
  uint64_t h = 5;
  for (const float v : window)
    h = mix(h, uint64_t(v));
  return h;
}
inline int32_t best_id(uint64_t state, uint64_t attention, uint64_t window, uint32_t vocab) {
  return int32_t(mix(mix(state, attention), window) % vocab);
}

// What the sequence's state is after `ids`, and the most likely next id, written without any engine.
struct Folded {
  uint64_t state = 1, attention = 2;
  std::array<float, 3> window{};
  void add(int32_t id) {
    state = mix(state, uint64_t(id));
    attention = mix(mix(attention, uint64_t(id) + 7), uint64_t(index_key(id)));
    window = {window[1], window[2], float(id + 1)};
  }
  int32_t next(uint32_t vocab) const { return best_id(state, attention, window_hash(window), vocab); }
};

inline int32_t next_id(std::span<const int32_t> ids, uint32_t vocab) {
  Folded folded;
  for (const int32_t id : ids)
    folded.add(id);
  return folded.next(vocab);
}

inline int32_t draw_id(int32_t likely, float temperature, float top_p, uint64_t seed, uint64_t counter, uint32_t vocab) {
  if (temperature == 0)
    return likely;
  uint32_t bits[2];
  std::memcpy(&bits[0], &temperature, 4);
  std::memcpy(&bits[1], &top_p, 4);
  return int32_t(mix(mix(mix(mix(uint64_t(likely), bits[0]), bits[1]), seed), counter) % vocab);
}

// Two arenas: paged caches and slots.
class FakeArenas : public ArenaAccess {
public:
  std::array<std::vector<std::byte>, 2> arenas;
  int fail_after = -1; // writes and fills that still work; -1: all

  Result<void> read(uint32_t arena, uint64_t offset, std::span<std::byte> to) override {
    K31_TRY(check_range(arena, offset, to.size(), arenas.at(arena).size()));
    std::memcpy(to.data(), arenas[arena].data() + offset, to.size());
    return {};
  }
  Result<void> write(uint32_t arena, uint64_t offset, std::span<const std::byte> from) override {
    K31_TRY(check_range(arena, offset, from.size(), arenas.at(arena).size()));
    if (fail_after >= 0 && fail_after-- == 0)
      return fail(Code::io, "the fake memory is gone");
    std::memcpy(arenas[arena].data() + offset, from.data(), from.size());
    return {};
  }
  Result<void> copy(uint32_t arena, uint64_t from, uint64_t to, uint64_t bytes) override {
    std::vector<std::byte> middle(bytes);
    K31_TRY(read(arena, from, middle));
    return write(arena, to, middle);
  }
  Result<void> fill(uint32_t arena, uint64_t offset, uint64_t bytes, std::byte value) override {
    const std::vector<std::byte> values(bytes, value);
    return write(arena, offset, values);
  }
};

class FakeModel : public Executor {
public:
  explicit FakeModel(ModelFacts facts, std::string digest = "fake") : model(std::move(facts)) {
    const uint64_t page = model.block_tokens * sizeof(float);
    StateLayout layout{std::move(digest),
                       model.block_tokens,
                       {{StateKind::latent, 1, Element::f32, 0, 0, page, model.blocks},
                        {StateKind::index, 1, Element::f32, 0, model.blocks * page, page, model.blocks},
                        {StateKind::kda, 0, Element::f32, 1, 0, 16, model.slots},
                        {StateKind::conv, 0, Element::f32, 1, model.slots * 16ull, 12, model.slots}}};
    memory.arenas[0].assign(2 * model.blocks * page, std::byte{0xff});
    memory.arenas[1].assign(model.slots * 28ull, std::byte{0xff});
    states.emplace(std::move(layout), memory);
  }

  const ModelFacts &facts() const override { return model; }
  StateMemory &state() override { return *states; }

  FakeArenas memory;
  int broken_id = -1;           // a token that makes the logits of its row not finite
  bool breaks_state = false;    // and the recurrent state too
  bool breaks_silently = false; // the state behind the row, but not its logits
  int fail_at = -1;             // number of the run that fails
  int runs = 0;
  int fail_at_fetch = -1, fetches = 0;
  uint32_t most_under_way = 0;     // runs whose outputs were not fetched
  std::map<std::string, int> used; // runs of each entry
  uint32_t most_rows = 0, most_segments = 0;
  std::vector<std::pair<int32_t, int32_t>> segments_seen; // start, length

  // The state of a place is exactly what `ids` leave behind.
  ::testing::AssertionResult holds(std::span<const int32_t> ids, const BlockTable &table, int32_t slot) {
    Folded want;
    for (size_t p = 0; p < ids.size(); ++p) {
      want.add(ids[p]);
      if (cell(0, table.data(), int32_t(p)) != float(ids[p]) || cell(1, table.data(), int32_t(p)) != index_key(ids[p]))
        return ::testing::AssertionFailure() << "row of position " << p << " of " << ids.size();
    }
    return holds_slot(ids, slot);
  }
  ::testing::AssertionResult holds_slot(std::span<const int32_t> ids, int32_t slot) {
    Folded want;
    for (const int32_t id : ids)
      want.add(id);
    uint64_t found = 0;
    if (!load_state(slot, found) || found != want.state)
      return ::testing::AssertionFailure() << "recurrent state after " << ids.size() << " positions, slot " << slot;
    if (load_window(slot) != want.window)
      return ::testing::AssertionFailure() << "window after " << ids.size() << " positions, slot " << slot;
    return ::testing::AssertionSuccess();
  }
  bool block_is(int32_t block, std::byte value) { return unit_is(0, block, value) && unit_is(1, block, value); }
  bool slot_is(int32_t slot, std::byte value) { return unit_is(2, slot, value) && unit_is(3, slot, value); }
  // One value of a block or slot becomes NaN; of a window the newest.
  void spoil(StateKind kind, int32_t unit) { set_value(unit_at(size_t(kind), unit)[kind == StateKind::conv ? 8 : 0], NAN); }

  Result<void> run(uint32_t number, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) override {
    if (runs++ == fail_at)
      return fail(Code::io, "the fake device is gone");
    const EntryFacts &entry = model.entries.at(number);
    ++used[entry.name];
    const auto counts = input(inputs, "counts");
    EXPECT_EQ(counts.size(), 4u);
    const uint32_t rows = uint32_t(counts[0]), segments = uint32_t(counts[1]), logit_rows = uint32_t(counts[2]);
    most_rows = std::max(most_rows, rows), most_segments = std::max(most_segments, segments);
    EXPECT_TRUE(rows && rows <= entry.rows && segments && segments <= entry.segments && logit_rows <= entry.logit_rows);
    const auto tokens = input(inputs, "tokens"), table = input(inputs, "segments"), row_segment = input(inputs, "row_segment"),
               blocks = input(inputs, "block_table");
    EXPECT_EQ(tokens.size(), rows);
    EXPECT_EQ(table.size(), size_t(segments) * 6);
    EXPECT_EQ(row_segment.size(), entry.rows);
    EXPECT_EQ(blocks.size(), size_t(segments) * model.table_blocks);
    check_segments(segments, table, blocks);
    std::vector<int32_t> likely(rows, -1);
    uint32_t row = 0;
    for (uint32_t s = 0; s < segments; ++s) {
      const int32_t *f = &table[s * 6];
      const int32_t *physical = &blocks[size_t(s) * model.table_blocks];
      EXPECT_EQ(uint32_t(f[0]), row);
      segments_seen.emplace_back(f[2], f[1]);
      uint64_t state = 1;
      bool finite = f[3] < 0 || load_state(f[3], state);
      std::array<float, 3> window = f[3] < 0 ? std::array<float, 3>{} : load_window(f[3]);
      for (int32_t p = f[2]; p < f[2] + f[1]; ++p, ++row) {
        EXPECT_EQ(uint32_t(row_segment[row]), s);
        set_value(*cell_at(0, physical, p), float(tokens[row]));
        set_value(*cell_at(1, physical, p), index_key(tokens[row]));
        state = mix(state, uint64_t(tokens[row]));
        window = {window[1], window[2], float(tokens[row] + 1)};
        const bool broken = tokens[row] == broken_id;
        if (broken && breaks_state && !breaks_silently)
          finite = false;
        likely[row] = (broken && !breaks_silently) || !finite ? -1 : best(physical, p, state, window);
        if (broken && breaks_silently)
          finite = false;
      }
      store(f[4], state, finite, window);
    }
    EXPECT_EQ(row, rows);
    for (; row < entry.rows; ++row)
      EXPECT_EQ(row_segment[row], -1);
    if (!logit_rows)
      return {};
    sample(inputs, outputs, likely, logit_rows);
    std::vector<std::vector<std::byte>> &kept = unfetched.emplace_back();
    for (const NamedOutput &out : outputs) {
      kept.emplace_back(out.bytes.begin(), out.bytes.end());
      std::fill(out.bytes.begin(), out.bytes.end(), std::byte{0x55});
    }
    most_under_way = std::max(most_under_way, uint32_t(unfetched.size()));
    EXPECT_LE(unfetched.size(), model.depth);
    return {};
  }

  Result<void> fetch(std::span<const NamedOutput> outputs) override {
    if (fetches++ == fail_at_fetch)
      return fail(Code::io, "the fake peer is gone");
    EXPECT_FALSE(unfetched.empty());
    EXPECT_EQ(unfetched.front().size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(unfetched.front()[i].size(), outputs[i].bytes.size());
      std::copy(unfetched.front()[i].begin(), unfetched.front()[i].end(), outputs[i].bytes.begin());
    }
    unfetched.pop_front();
    return {};
  }

private:
  struct Params {
    float temperature, top_p;
    uint64_t seed, counter;
  };

  // No segment writes what another one of the run reads or writes.
  void check_segments(uint32_t segments, const std::vector<int32_t> &table, const std::vector<int32_t> &blocks) {
    std::map<int32_t, uint32_t> slot_writer, block_writer;
    for (uint32_t s = 0; s < segments; ++s) {
      const int32_t *f = &table[s * 6], *physical = &blocks[size_t(s) * model.table_blocks];
      EXPECT_GE(f[1], 1);
      EXPECT_EQ(f[3] < 0, f[2] == 0) << "a sequence starts from the zero state, and only then";
      EXPECT_TRUE(f[3] < int32_t(model.slots) && f[4] >= 0 && uint32_t(f[4]) < model.slots);
      EXPECT_TRUE(slot_writer.emplace(f[4], s).second) << "two segments write slot " << f[4];
      for (uint32_t b = uint32_t(f[2]) / model.block_tokens; b <= uint32_t(f[2] + f[1] - 1) / model.block_tokens; ++b)
        EXPECT_TRUE(block_writer.emplace(physical[b], s).second) << "two segments write block " << physical[b];
    }
    for (uint32_t s = 0; s < segments; ++s) {
      const int32_t *f = &table[s * 6], *physical = &blocks[size_t(s) * model.table_blocks];
      const auto writer = slot_writer.find(f[3]);
      EXPECT_TRUE(writer == slot_writer.end() || writer->second == s) << "slot " << f[3] << " is read and written";
      for (uint32_t b = 0; b <= uint32_t(f[2] + f[1] - 1) / model.block_tokens; ++b) {
        EXPECT_TRUE(physical[b] >= 0 && uint32_t(physical[b]) < model.blocks) << "block " << physical[b];
        const auto other = block_writer.find(physical[b]);
        EXPECT_TRUE(other == block_writer.end() || other->second == s) << "block " << physical[b] << " is read and written";
      }
    }
  }

  template <class T = int32_t> std::vector<T> input(std::span<const NamedInput> inputs, const std::string &name) {
    for (const NamedInput &in : inputs)
      if (name == in.name) {
        std::vector<T> values(in.bytes.size() / sizeof(T));
        EXPECT_EQ(values.size() * sizeof(T), in.bytes.size());
        std::memcpy(values.data(), in.bytes.data(), in.bytes.size());
        return values;
      }
    ADD_FAILURE() << "input " << name << " is missing";
    return {};
  }

  std::byte *unit_at(size_t member, int32_t unit) {
    const StateMember &m = states->layout().members.at(member);
    return memory.arenas[m.arena].data() + m.offset + uint64_t(unit) * m.unit_bytes;
  }
  bool unit_is(size_t member, int32_t unit, std::byte value) {
    const uint64_t bytes = states->layout().members.at(member).unit_bytes;
    return std::all_of(unit_at(member, unit), unit_at(member, unit) + bytes, [&](std::byte b) { return b == value; });
  }
  static void set_value(std::byte &at, float value) { std::memcpy(&at, &value, 4); }
  std::byte *cell_at(size_t member, const int32_t *physical, int32_t p) {
    const uint32_t q = uint32_t(p);
    return unit_at(member, physical[q / model.block_tokens]) + q % model.block_tokens * 4;
  }
  float cell(size_t member, const int32_t *physical, int32_t p) {
    float value;
    std::memcpy(&value, cell_at(member, physical, p), 4);
    return value;
  }
  bool load_state(int32_t slot, uint64_t &state) {
    float parts[4];
    std::memcpy(parts, unit_at(2, slot), sizeof parts);
    state = 0;
    for (const float part : parts) {
      if (!std::isfinite(part))
        return false;
      state = state << 16 | uint64_t(part);
    }
    return true;
  }
  std::array<float, 3> load_window(int32_t slot) {
    std::array<float, 3> window;
    std::memcpy(window.data(), unit_at(3, slot), sizeof window);
    return window;
  }
  void store(int32_t slot, uint64_t state, bool finite, const std::array<float, 3> &window) {
    for (int i = 0; i < 4; ++i)
      set_value(unit_at(2, slot)[4 * i], finite ? float(state >> (48 - 16 * i) & 0xffff) : NAN);
    std::memcpy(unit_at(3, slot), window.data(), sizeof window);
  }
  // The most likely id after position p; -1 when something that is read is not finite.
  int32_t best(const int32_t *physical, int32_t p, uint64_t state, const std::array<float, 3> &window) {
    uint64_t attention = 2;
    for (int32_t q = 0; q <= p; ++q) {
      const float id = cell(0, physical, q), key = cell(1, physical, q);
      if (!std::isfinite(id) || !std::isfinite(key))
        return -1;
      attention = mix(mix(attention, uint64_t(id) + 7), uint64_t(key));
    }
    for (const float v : window)
      if (!std::isfinite(v))
        return -1;
    return best_id(state, attention, window_hash(window), model.vocab);
  }

  void sample(std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs, const std::vector<int32_t> &likely,
              uint32_t count) {
    const auto which = input(inputs, "logit_rows");
    const auto params = input<Params>(inputs, "sampling");
    EXPECT_EQ(which.size(), count);
    EXPECT_EQ(params.size(), count);
    for (const NamedOutput &out : outputs) {
      for (uint32_t i = 0; i < count; ++i) {
        const int32_t best = likely.at(size_t(which[i]));
        if (std::string(out.name) == "sampled") {
          EXPECT_EQ(out.bytes.size(), count * 4);
          const Params &p = params[i];
          const int32_t id = best < 0 ? -1 : draw_id(best, p.temperature, p.top_p, p.seed, p.counter, model.vocab);
          std::memcpy(out.bytes.data() + i * 4, &id, 4);
        } else {
          EXPECT_STREQ(out.name, "logits");
          EXPECT_EQ(out.bytes.size(), size_t(count) * model.vocab * 4);
          std::vector<float> row(model.vocab, -1.0f);
          row[size_t(std::max(best, 0))] = 1.0f;
          std::memcpy(out.bytes.data() + size_t(i) * model.vocab * 4, row.data(), row.size() * 4);
        }
      }
    }
  }

  ModelFacts model;
  std::optional<StateMemory> states;
  std::deque<std::vector<std::vector<std::byte>>> unfetched; // outputs of the runs, the oldest first
};

} // namespace k31::engine::test
