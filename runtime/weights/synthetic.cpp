#include "runtime/weights/synthetic.h"
#include "runtime/weights/placement.h"
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace k31::weights {
namespace {

constexpr size_t kTable = 4u << 20; // bytes of values that are made; rows are copies of runs of it
constexpr uint64_t kItem = 16u << 20;

// SplitMix64: one step from any state is well mixed.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Sum of four uniform values of 16 bits, about normal with deviation 1.
float about_normal(uint64_t bits) {
  const float sum = float((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
  return (sum - 2 * 65535.0f) * (1.7320508f / 65536); // a uniform value of [0, 1) has variance 1/12
}

uint16_t bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16); // never NaN here
}

using Table = std::vector<std::byte>;

Table normal_table(plan::DType type, float mean, float deviation, uint64_t seed) {
  Table table(kTable);
  const size_t bytes = type == plan::DType::bf16 ? 2 : 4;
  for (size_t i = 0; i < kTable / bytes; ++i) {
    const float value = mean + deviation * about_normal(mix(seed + i));
    if (bytes == 4)
      memcpy(table.data() + i * 4, &value, 4);
    else if (const uint16_t narrow = bf16(value); true)
      memcpy(table.data() + i * 2, &narrow, 2);
  }
  return table;
}

// Any bytes (codes), or scales of E8M0 from 118 to 124.
Table byte_table(bool scales, uint64_t seed) {
  Table table(kTable);
  for (size_t i = 0; i < kTable; i += 8) {
    const uint64_t bits = mix(seed + i);
    for (size_t j = 0; j < 8; ++j) {
      const uint8_t byte = uint8_t(bits >> 8 * j);
      table[i + j] = std::byte(scales ? 118 + byte % 7 : byte);
    }
  }
  return table;
}

// Copies runs of the table that start at places which follow from `seed` alone.
template <class Write> void fill_from(const Table &table, uint64_t bytes, uint64_t seed, Write &&write) {
  constexpr uint64_t run = kTable / 8;
  for (uint64_t done = 0, part = 0; done < bytes; done += run, ++part) {
    const uint64_t begin = mix(seed ^ mix(part)) % (kTable - run) & ~uint64_t(63);
    write(done, std::span(table).subspan(begin, std::min(bytes - done, run)));
  }
}

struct Tables {
  Table matrix_bf16, matrix_f32, gain_bf16, gain_f32, bias_bf16, bias_f32, codes, scales;

  explicit Tables(uint64_t seed) {
    using plan::DType;
    matrix_bf16 = normal_table(DType::bf16, 0, 0.02f, mix(seed + 1)),
    matrix_f32 = normal_table(DType::f32, 0, 0.02f, mix(seed + 2));
    gain_bf16 = normal_table(DType::bf16, 1, 0.1f, mix(seed + 3)), gain_f32 = normal_table(DType::f32, 1, 0.1f, mix(seed + 4));
    bias_bf16 = normal_table(DType::bf16, 0, 0.01f, mix(seed + 5)), bias_f32 = normal_table(DType::f32, 0, 0.01f, mix(seed + 6));
    codes = byte_table(false, mix(seed + 7)), scales = byte_table(true, mix(seed + 8));
  }

  const Table &of(const plan::WeightStack &stack) const {
    const std::string_view name = stack.pattern()->string_view(), dtype = stack.dtype()->string_view();
    if (dtype == "U8")
      return name.ends_with("_scale") ? scales : codes;
    const bool wide = dtype == "F32";
    if (name.find("e_score_correction_bias") != std::string_view::npos)
      return wide ? bias_f32 : bias_bf16;
    if (stack.shape()->size() == 1 && name.find("norm") != std::string_view::npos && !name.ends_with(".bias"))
      return wide ? gain_f32 : gain_bf16;
    return wide ? matrix_f32 : matrix_bf16;
  }
};

// Rows [begin, end) of one member, counted from row_begin.
struct Item {
  uint32_t stack, member;
  uint64_t begin, end;
};

} // namespace

void fill_normal(std::span<std::byte> bytes, plan::DType type, float deviation, uint64_t seed) {
  fill_from(normal_table(type, 0, deviation, mix(seed)), bytes.size(), mix(seed + 1),
            [&](uint64_t at, std::span<const std::byte> part) { memcpy(bytes.data() + at, part.data(), part.size()); });
}

void fill_synthetic(const plan::Plan &plan, const WriteArena &write, int threads, uint64_t seed) {
  const Tables tables(seed);
  std::vector<Item> items;
  for (uint32_t s = 0; s < plan.weights()->size(); ++s) {
    const plan::Layout &l = *plan.weights()->Get(s)->layout();
    const uint64_t step = std::max<uint64_t>(kItem / std::max<uint64_t>(l.byte_count(), 1), 1);
    for (uint32_t m = 0; m < plan.weights()->Get(s)->files()->size(); ++m)
      for (uint64_t begin = 0; begin < l.row_count(); begin += step)
        items.push_back({s, m, begin, std::min(l.row_count(), begin + step)});
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < items.size();) {
      const Item &item = items[i];
      const plan::WeightStack &stack = *plan.weights()->Get(item.stack);
      const plan::Layout &l = *stack.layout();
      const uint64_t member = stack.dest() + stack.stride() * item.member;
      for (uint64_t r = item.begin; r < item.end;) {
        const uint64_t rows = run_length(l, r, item.end - r);
        const uint64_t bytes = rows == 1 ? l.byte_count() : rows * l.row_bytes();
        const uint64_t to = member + dest_row(l, r) * l.dest_row_bytes();
        fill_from(tables.of(stack), bytes, mix(mix(seed + item.stack) + (uint64_t(item.member) << 32) + r),
                  [&](uint64_t at, std::span<const std::byte> part) { write(stack.arena(), to + at, part); });
        r += rows;
      }
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(work);
  work();
}

} // namespace k31::weights
