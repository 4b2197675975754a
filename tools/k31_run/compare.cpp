#include "tools/k31_run/compare.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace k31::run {
namespace {

uint64_t bytes_of(plan::DType type) { return type == plan::DType::bf16 ? 2 : type == plan::DType::u8 ? 1 : 4; }
bool is_float(plan::DType type) { return type == plan::DType::bf16 || type == plan::DType::f32; }

template <class T> T load(const std::byte *p) {
  T value;
  memcpy(&value, p, sizeof value);
  return value;
}

} // namespace

uint64_t Values::size() const { return bytes.size() / bytes_of(type); }

double Values::at(uint64_t i) const {
  const std::byte *p = bytes.data() + i * bytes_of(type);
  switch (type) {
  case plan::DType::bf16:
    return std::bit_cast<float>(uint32_t(load<uint16_t>(p)) << 16);
  case plan::DType::f32:
    return load<float>(p);
  case plan::DType::i32:
    return load<int32_t>(p);
  default:
    return load<uint8_t>(p);
  }
}

bool Values::written(uint64_t i) const {
  const uint64_t width = bytes_of(type);
  return std::any_of(bytes.begin() + int64_t(i * width), bytes.begin() + int64_t((i + 1) * width),
                     [](std::byte b) { return b != kUnwritten; });
}

std::string Values::shape() const {
  const uint64_t rows = size() / std::max<uint64_t>(columns, 1);
  return cat(plan::EnumNameDType(type), " [", rows, columns == 1 ? "" : cat(", ", columns), "]");
}

std::string Values::text(uint64_t i) const {
  if (!written(i))
    return type == plan::DType::i32 ? "-1" : "nothing";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", at(i));
  return text;
}

Difference compare(const Values &a, const Values &b) {
  Difference d;
  const uint64_t n = std::min(a.size(), b.size());
  const bool floats = is_float(a.type) && is_float(b.type);
  double largest = 0; // |a - b|
  bool broken = false;
  for (uint64_t i = 0; i < n; ++i) {
    const bool in_a = a.written(i), in_b = b.written(i);
    if (!in_a && !in_b)
      continue;
    ++d.compared;
    const double x = a.at(i), y = b.at(i);
    const bool finite = in_a && in_b && std::isfinite(x) && std::isfinite(y);
    if (floats && !finite) {
      const bool same = in_a && in_b && ((std::isnan(x) && std::isnan(y)) || x == y);
      d.differing += !same;
      if (!same && !std::exchange(broken, true))
        d.at = i;
      continue;
    }
    d.scale = std::max({d.scale, std::fabs(x), std::fabs(y)});
    const double difference = std::fabs(x - y);
    d.differing += difference != 0;
    if (difference > largest) {
      if (!broken && (floats || largest == 0)) // integers: the first one, their distance means nothing
        d.at = i;
      largest = difference;
    }
  }
  if (broken)
    d.relative = std::numeric_limits<double>::infinity();
  else if (largest > 0)
    d.relative = floats ? largest / d.scale : 1;
  return d;
}

} // namespace k31::run
