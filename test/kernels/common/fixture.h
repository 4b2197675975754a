// Third-party fixtures: JSON objects of named arrays, each {"shape": [...], "data": [...]}.
#pragma once
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace k31::test {

class Fixture {
public:
  // `path` is relative to test/data.
  explicit Fixture(const std::string &path) {
    std::ifstream in(std::string(K31_TEST_DATA) + "/" + path);
    if (!in)
      throw std::runtime_error("cannot open the fixture " + std::string(K31_TEST_DATA) + "/" + path);
    in >> json_;
  }
  template <class T = float> std::vector<T> data(const std::string &name) const {
    return json_.at(name).at("data").get<std::vector<T>>();
  }
  std::vector<int64_t> shape(const std::string &name) const { return json_.at(name).at("shape").get<std::vector<int64_t>>(); }
  template <class T = float> T value(const std::string &name) const { return json_.at(name).get<T>(); }
  const nlohmann::json &json() const { return json_; }

private:
  nlohmann::json json_;
};

} // namespace k31::test
