// A model in plain C++ behind the engine's executor. The next id is a hash of all earlier ids, read back through the block table,
// and of a state kept in the sequence's slot: a wrong table, slot, start or order gives other ids. It also checks every rule of
// the entry contract.
#pragma once
#include "runtime/engine/executor.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace k31::engine::test {

inline uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ h >> 29;
}

// What the fake model computes at one position of a sequence, written without any engine.
inline int32_t next_id(std::span<const int32_t> ids, uint32_t vocab) {
  uint64_t state = 1, attention = 2;
  for (const int32_t id : ids) {
    state = mix(state, uint64_t(id));
    attention = mix(attention, uint64_t(id) + 7);
  }
  return int32_t(mix(state, attention) % vocab);
}

inline int32_t draw_id(int32_t likely, float temperature, float top_p, uint64_t seed, uint64_t counter, uint32_t vocab) {
  if (temperature == 0)
    return likely;
  uint32_t bits[2];
  std::memcpy(&bits[0], &temperature, 4);
  std::memcpy(&bits[1], &top_p, 4);
  return int32_t(mix(mix(mix(mix(uint64_t(likely), bits[0]), bits[1]), seed), counter) % vocab);
}

class FakeModel : public Executor {
public:
  explicit FakeModel(ModelFacts facts)
      : model(std::move(facts)), cells(size_t(model.blocks) * model.block_tokens, poison), states(model.slots, poison) {}

  static constexpr int32_t poison = -7;

  const ModelFacts &facts() const override { return model; }
  int32_t broken_id = -1; // a token that makes the logits of its row not finite
  int fail_at = -1;       // number of the run that fails
  int runs = 0;
  std::map<std::string, int> used; // runs of each entry
  uint32_t most_rows = 0, most_segments = 0;
  std::vector<std::pair<int32_t, int32_t>> segments_seen; // start, length

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
    std::vector<int32_t> likely(rows, -1);
    std::set<int32_t> slots, owned;
    uint32_t row = 0;
    for (uint32_t s = 0; s < segments; ++s) {
      const int32_t *f = &table[s * 6];
      const int32_t *physical = &blocks[size_t(s) * model.table_blocks];
      EXPECT_EQ(uint32_t(f[0]), row);
      EXPECT_GE(f[1], 1);
      EXPECT_EQ(f[3], f[2] == 0 ? -1 : f[4]);
      EXPECT_TRUE(f[4] >= 0 && uint32_t(f[4]) < model.slots);
      EXPECT_TRUE(slots.insert(f[4]).second) << "two segments share slot " << f[4];
      segments_seen.emplace_back(f[2], f[1]);
      const uint32_t last = uint32_t(f[2] + f[1] - 1) / model.block_tokens;
      for (uint32_t b = 0; b <= last; ++b)
        EXPECT_TRUE(physical[b] >= 0 && uint32_t(physical[b]) < model.blocks && owned.insert(physical[b]).second)
            << "block " << physical[b];
      uint64_t state = f[3] < 0 ? 1 : states.at(size_t(f[3]));
      for (int32_t p = f[2]; p < f[2] + f[1]; ++p, ++row) {
        EXPECT_EQ(uint32_t(row_segment[row]), s);
        cell(physical, p) = tokens[row];
        state = mix(state, uint64_t(tokens[row]));
        uint64_t attention = 2;
        for (int32_t q = 0; q <= p; ++q)
          attention = mix(attention, uint64_t(cell(physical, q)) + 7);
        likely[row] = tokens[row] == broken_id ? -1 : int32_t(mix(state, attention) % model.vocab);
      }
      states.at(size_t(f[4])) = state;
    }
    EXPECT_EQ(row, rows);
    for (; row < entry.rows; ++row)
      EXPECT_EQ(row_segment[row], -1);
    if (logit_rows)
      sample(inputs, outputs, likely, logit_rows);
    return {};
  }

private:
  struct Params {
    float temperature, top_p;
    uint64_t seed, counter;
  };

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

  int32_t &cell(const int32_t *physical, int32_t p) {
    return cells.at(size_t(physical[uint32_t(p) / model.block_tokens]) * model.block_tokens + uint32_t(p) % model.block_tokens);
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
  std::vector<int32_t> cells;
  std::vector<uint64_t> states;
};

} // namespace k31::engine::test
