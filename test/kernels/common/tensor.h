// Tensors of kernel tests: a strided [rows, cols] array of fp32, bf16 or i32 with poison around and between what a kernel may
// touch. Reads of poison turn results into NaN; writes to it are found by `untouched`.
#pragma once
#include "codegen/kernels/common/types.h"
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace k31::test {

using kernels::DType;

inline float round_bf16(float v) {
  uint32_t u;
  std::memcpy(&u, &v, 4);
  if (std::isnan(v))
    return v;
  u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&v, &u, 4);
  return v;
}
inline uint16_t bf16_bits(float v) {
  v = round_bf16(v);
  uint32_t u;
  std::memcpy(&u, &v, 4);
  return (uint16_t)(u >> 16);
}
inline float bf16_value(uint16_t b) {
  uint32_t u = (uint32_t)b << 16;
  float v;
  std::memcpy(&v, &u, 4);
  return v;
}
inline int64_t element_bytes(DType t) { return t == DType::bf16 ? 2 : t == DType::u8 ? 1 : 4; }

// One generator for all fills of a test; every run draws the same numbers.
inline std::mt19937 &random_engine() {
  static std::mt19937 engine(20260727);
  return engine;
}
inline float normal(float scale = 1) { return std::normal_distribution<float>(0, scale)(random_engine()); }
inline int uniform_int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_engine()); } // both ends
inline float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_engine()); }

class Tensor {
public:
  static constexpr int64_t kGuard = 64;        // elements before and after, poisoned as well
  static constexpr uint8_t kPoisonByte = 0xff; // all ones: NaN in fp32 and bf16, -1 in i32

  Tensor() = default;
  Tensor(DType type, int64_t rows, int64_t cols, int64_t ld = 0)
      : type_(type), rows_(rows), cols_(cols), ld_(ld ? ld : cols),
        bytes_((size_t)((rows_ * ld_ + 2 * kGuard) * element_bytes(type)), kPoisonByte) {}

  DType type() const { return type_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t ld() const { return ld_; }
  void *data() { return bytes_.data() + kGuard * element_bytes(type_); }
  template <class T> T *as() { return (T *)data(); }

  float at(int64_t r, int64_t c = 0) const {
    const uint8_t *p = address(r, c);
    if (type_ == DType::bf16) {
      uint16_t b;
      std::memcpy(&b, p, 2);
      return bf16_value(b);
    }
    if (type_ == DType::u8)
      return *p;
    if (type_ == DType::i32) {
      int32_t i;
      std::memcpy(&i, p, 4);
      return (float)i;
    }
    float f;
    std::memcpy(&f, p, 4);
    return f;
  }
  void set(int64_t r, int64_t c, float v) {
    uint8_t *p = address(r, c);
    if (type_ == DType::bf16) {
      uint16_t b = bf16_bits(v);
      std::memcpy(p, &b, 2);
    } else if (type_ == DType::u8) {
      *p = (uint8_t)v;
    } else if (type_ == DType::i32) { // v need not be an integer for the other types, nor finite
      int32_t i = (int32_t)v;
      std::memcpy(p, &i, 4);
    } else {
      std::memcpy(p, &v, 4);
    }
  }
  template <class F> Tensor &fill(F f, int64_t rows = -1) { // f() for each element of the first `rows` rows
    for (int64_t r = 0; r < (rows < 0 ? rows_ : rows); ++r)
      for (int64_t c = 0; c < cols_; ++c)
        set(r, c, f());
    return *this;
  }
  Tensor &fill_normal(float scale = 1, int64_t rows = -1) {
    return fill([=] { return normal(scale); }, rows);
  }
  Tensor &fill_from(const std::vector<float> &values) {
    EXPECT_EQ((int64_t)values.size(), rows_ * cols_);
    size_t i = 0;
    return fill([&] { return values[i++]; });
  }

  // True when nothing but [0, rows) x [0, cols) was ever written.
  bool untouched_outside(int64_t rows) const {
    int64_t size = element_bytes(type_);
    for (int64_t e = 0; e < (int64_t)bytes_.size() / size; ++e) {
      int64_t r = (e - kGuard) / ld_, c = (e - kGuard) % ld_;
      if (e >= kGuard && r < rows && c < cols_)
        continue;
      for (int64_t b = 0; b < size; ++b)
        if (bytes_[(size_t)(e * size + b)] != kPoisonByte)
          return false;
    }
    return true;
  }

private:
  uint8_t *address(int64_t r, int64_t c) { return bytes_.data() + (kGuard + r * ld_ + c) * element_bytes(type_); }
  const uint8_t *address(int64_t r, int64_t c) const { return bytes_.data() + (kGuard + r * ld_ + c) * element_bytes(type_); }

  DType type_ = DType::f32;
  int64_t rows_ = 0, cols_ = 0, ld_ = 0;
  std::vector<uint8_t> bytes_;
};

// Compares the first `rows` rows with want(r, c), a double. `sum_tolerance` bounds the fp32 work; bf16 outputs get half an ulp
// more.
template <class F> void expect_close(const Tensor &got, int64_t rows, F want, double sum_tolerance, const char *what = "out") {
  int reported = 0;
  for (int64_t r = 0; r < rows && reported < 5; ++r)
    for (int64_t c = 0; c < got.cols() && reported < 5; ++c) {
      double w = want(r, c), g = got.at(r, c);
      double tolerance = sum_tolerance + (got.type() == DType::bf16 ? std::abs(w) / 256 : 0);
      if (!(std::abs(g - w) <= tolerance)) {
        ADD_FAILURE() << what << "[" << r << ", " << c << "] is " << g << ", expected " << w << " within " << tolerance;
        ++reported;
      }
    }
  EXPECT_TRUE(got.untouched_outside(rows)) << what << ": wrote outside its live rows or columns";
}

// Runs all tasks of a launch in a fixed shuffled order: the order must not matter.
template <class Args, class Entry> void launch(Entry entry, const Args &args, uint32_t tasks) {
  std::vector<uint32_t> order(tasks);
  for (uint32_t t = 0; t < tasks; ++t)
    order[t] = (t * 7 + tasks / 2) % tasks;
  if (tasks % 7 == 0)
    for (uint32_t t = 0; t < tasks; ++t)
      order[t] = tasks - 1 - t;
  for (uint32_t t : order)
    entry(&args, t, tasks);
}

} // namespace k31::test
