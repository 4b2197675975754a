// What both kinds of kernel tests share: bf16, random numbers, and tensors with poison around and between what a kernel may
// touch. Reads of poison turn results into NaN; writes to it are found by `untouched_outside`.
#pragma once
#include "codegen/kernels/common/types.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
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
inline int64_t element_bytes(DType t) { return t == DType::bf16 ? 2 : t == DType::u8 ? 1 : 4; }

// One generator for all fills of a test; every run draws the same numbers.
inline std::mt19937 &random_engine() {
  static std::mt19937 engine(20260727);
  return engine;
}
inline float normal(float scale = 1) { return std::normal_distribution<float>(0, scale)(random_engine()); }
inline int uniform_int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_engine()); } // both ends
inline float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_engine()); }

// A strided [rows, cols] array of fp32, bf16, i32 or u8.
class HostTensor {
public:
  static constexpr int64_t kGuard = 64;        // elements before and after, poisoned as well
  static constexpr uint8_t kPoisonByte = 0xff; // all ones: NaN in fp32 and bf16, -1 in i32

  HostTensor() = default;
  HostTensor(DType type, int64_t rows, int64_t cols, int64_t ld = 0)
      : type_(type), rows_(rows), cols_(cols), ld_(ld ? ld : cols), size_(element_bytes(type)),
        bytes_((size_t)((rows_ * ld_ + 2 * kGuard) * size_), kPoisonByte) {}

  DType type() const { return type_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t ld() const { return ld_; }
  void *data() { return address(0, 0); }
  template <class T> T *as() { return (T *)data(); }

  double at(int64_t r, int64_t c = 0) const {
    const uint8_t *p = bytes_.data() + offset(r, c);
    if (type_ == DType::u8)
      return *p;
    uint32_t u = 0;
    std::memcpy(&u, p, size_);
    if (type_ == DType::i32)
      return (int32_t)u;
    if (type_ == DType::bf16)
      u <<= 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
  void set(int64_t r, int64_t c, double v) {
    uint8_t *p = address(r, c);
    if (type_ == DType::u8) {
      *p = (uint8_t)v;
    } else if (type_ == DType::i32) { // v need not be an integer for the other types, nor finite
      int32_t i = (int32_t)v;
      std::memcpy(p, &i, 4);
    } else {
      float f = type_ == DType::bf16 ? round_bf16((float)v) : (float)v;
      std::memcpy(p, (const char *)&f + (4 - size_), size_); // bf16: the upper half
    }
  }
  template <class F> void fill(F f, int64_t rows = -1) { // f() for each element of the first `rows` rows
    for (int64_t r = 0; r < (rows < 0 ? rows_ : rows); ++r)
      for (int64_t c = 0; c < cols_; ++c)
        set(r, c, f());
  }
  void fill_normal(float scale = 1, int64_t rows = -1) {
    fill([=] { return normal(scale); }, rows);
  }
  void fill_from(const std::vector<float> &values) {
    if ((int64_t)values.size() != rows_ * cols_)
      throw std::invalid_argument(std::to_string(values.size()) + " values for " + std::to_string(rows_ * cols_) + " elements");
    size_t i = 0;
    fill([&] { return values[i++]; });
  }

  // True when nothing but [0, rows) x [0, cols) was ever written.
  bool untouched_outside(int64_t rows) const {
    for (int64_t e = 0; e < (int64_t)bytes_.size() / size_; ++e) {
      int64_t r = (e - kGuard) / ld_, c = (e - kGuard) % ld_;
      if (e >= kGuard && r < rows && c < cols_)
        continue;
      for (int64_t b = 0; b < size_; ++b)
        if (bytes_[(size_t)(e * size_ + b)] != kPoisonByte)
          return false;
    }
    return true;
  }

protected:
  size_t offset(int64_t r, int64_t c) const { return (size_t)((kGuard + r * ld_ + c) * size_); }
  uint8_t *address(int64_t r, int64_t c) {
    changed_ = true;
    return bytes_.data() + offset(r, c);
  }

  DType type_ = DType::f32;
  int64_t rows_ = 0, cols_ = 0, ld_ = 0, size_ = 4;
  std::vector<uint8_t> bytes_;
  bool changed_ = true; // since a copy elsewhere was made
};

// Calls f(i) for 0 <= i < count, by all processors.
template <class F> void for_each_index(int64_t count, const F &f) {
  std::atomic<int64_t> next = 0;
  auto work = [&] {
    constexpr int64_t kTogether = 64;
    for (int64_t first; (first = next.fetch_add(kTogether)) < count;)
      for (int64_t i = first; i < std::min(first + kTogether, count); ++i)
        f(i);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < std::thread::hardware_concurrency() && (int64_t)i * 1024 < count; ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
}

// Compares the first `rows` rows with want(r, c), a double, within `tolerance` plus half an ulp of a bf16 output; also looks for
// writes outside them. fail(text) gets what differs, the first four elements at most. want is called by several threads at once.
template <class F, class Fail>
void compare(const HostTensor &got, int64_t rows, F want, double tolerance, const char *what, Fail fail) {
  struct Wrong {
    int64_t at;
    double got, want, most;
  };
  std::vector<Wrong> wrong;
  std::mutex one_at_a_time;
  for_each_index(rows * got.cols(), [&](int64_t at) {
    const int64_t r = at / got.cols(), c = at % got.cols();
    const double w = want(r, c), g = got.at(r, c), most = tolerance + (got.type() == DType::bf16 ? std::abs(w) / 256 : 0);
    if (!(std::abs(g - w) <= most)) {
      std::lock_guard lock(one_at_a_time);
      wrong.push_back({at, g, w, most});
    }
  });
  std::sort(wrong.begin(), wrong.end(), [](const Wrong &a, const Wrong &b) { return a.at < b.at; });
  for (size_t i = 0; i < wrong.size() && i < 4; ++i) {
    char text[200];
    snprintf(text, sizeof text, "%s[%ld, %ld] is %g, expected %g within %g", what, (long)(wrong[i].at / got.cols()),
             (long)(wrong[i].at % got.cols()), wrong[i].got, wrong[i].want, wrong[i].most);
    fail(std::string(text));
  }
  if (!got.untouched_outside(rows))
    fail(std::string(what) + ": wrote outside its live rows or columns");
}

} // namespace k31::test
