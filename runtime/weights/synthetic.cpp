#include "runtime/weights/placement.h"
#include "runtime/weights/source.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

namespace k31::weights {
namespace {

constexpr size_t kTable = 4u << 20;  // bytes of values that are made; tensors are copies of runs of it
constexpr uint64_t kRun = 64u << 10; // bytes of one run

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

// Bytes [offset, offset + out.size()) of a tensor that consists of runs of the table, which start at places that follow from
// `seed`.
void copy_runs(const Table &table, uint64_t seed, uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const uint64_t inside = offset % kRun, n = std::min<uint64_t>(kRun - inside, out.size());
    const uint64_t begin = mix(seed ^ mix(offset / kRun)) % (kTable - kRun) & ~uint64_t(63);
    memcpy(out.data(), table.data() + begin + inside, n);
    out = out.subspan(n), offset += n;
  }
}

// FNV-1a of a tensor's name.
uint64_t hash(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : name)
    h = (h ^ uint8_t(c)) * 0x100000001b3u;
  return h;
}

struct Tables {
  Table matrix_bf16, matrix_f32, gain_bf16, gain_f32, bias_bf16, bias_f32, codes, scales;

  Tables(uint64_t seed, bool skewed) {
    using plan::DType;
    matrix_bf16 = normal_table(DType::bf16, 0, 0.02f, mix(seed + 1)),
    matrix_f32 = normal_table(DType::f32, 0, 0.02f, mix(seed + 2));
    gain_bf16 = normal_table(DType::bf16, 1, 0.1f, mix(seed + 3)), gain_f32 = normal_table(DType::f32, 1, 0.1f, mix(seed + 4));
    const float bias = skewed ? 0.3f : 0.01f; // scores are sigmoids of about normal values
    bias_bf16 = normal_table(DType::bf16, 0, bias, mix(seed + 5)), bias_f32 = normal_table(DType::f32, 0, bias, mix(seed + 6));
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

class Synthetic : public Source {
public:
  Synthetic(uint64_t seed, bool skewed) : tables(seed, skewed), seed(seed) {}
  Result<void> read(const plan::WeightStack &stack, uint32_t member, uint64_t offset, std::span<std::byte> out) const override {
    copy_runs(tables.of(stack), mix(seed ^ hash(member_name(stack, member))), offset, out);
    return {};
  }

private:
  Tables tables;
  uint64_t seed;
};

} // namespace

std::unique_ptr<Source> make_synthetic(uint64_t seed, bool skewed) { return std::make_unique<Synthetic>(seed, skewed); }

void fill_normal(std::span<std::byte> bytes, plan::DType type, float deviation, uint64_t seed) {
  copy_runs(normal_table(type, 0, deviation, mix(seed)), mix(seed + 1), 0, bytes);
}

} // namespace k31::weights
