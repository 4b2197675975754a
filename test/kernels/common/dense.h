// fp64 matrices for tests that compute what stands around an op.
#pragma once
#include "test/kernels/common/fixture.h"
#include <cmath>

namespace k31::test {

using Matrix = std::vector<std::vector<double>>;

inline Matrix matrix(const Fixture &f, const std::string &name, int rows) {
  std::vector<double> values = f.data<double>(name);
  Matrix m(rows);
  for (int r = 0; r < rows; ++r)
    m[r].assign(values.begin() + r * (values.size() / rows), values.begin() + (r + 1) * (values.size() / rows));
  return m;
}
// x W^T
inline Matrix matmul(const Matrix &x, const Matrix &w) {
  Matrix y(x.size(), std::vector<double>(w.size()));
  for (size_t t = 0; t < x.size(); ++t)
    for (size_t n = 0; n < w.size(); ++n)
      for (size_t k = 0; k < x[t].size(); ++k)
        y[t][n] += x[t][k] * w[n].at(k);
  return y;
}
inline void rms_norm(Matrix &x, const std::vector<float> &gain, double epsilon) {
  for (auto &row : x) {
    double squares = 0;
    for (double v : row)
      squares += v * v;
    for (size_t i = 0; i < row.size(); ++i)
      row[i] *= gain[i % gain.size()] / std::sqrt(squares / row.size() + epsilon);
  }
}

} // namespace k31::test
