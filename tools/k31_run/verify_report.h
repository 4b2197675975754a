// What verify found, as text: the largest difference, the first operation that is wrong, what could not be compared.
#pragma once
#include "runtime/base/result.h"
#include "tools/k31_run/lockstep.h"
#include <string>
#include <vector>

namespace k31::run {

class VerifyReport {
public:
  // `bound`: the largest relative difference that is right. With `all`, every difference is kept for a table.
  VerifyReport(const plan::Plan &plan, const plan::Plan &reference, double bound, bool from_reference, bool all)
      : plan(plan), reference(reference), bound(bound), from_reference(from_reference), all(all) {}

  void add(const Pair &pair, const std::string &entry); // `entry`: what ran, for people
  void add(const LockstepReport &ran);

  // An error when an operation differs, or none was compared.
  Result<void> print() const;

private:
  // One output that was compared.
  struct Row {
    std::string label, kernel, reference_kernel, shape, reference_shape, entry;
    uint32_t output = 0; // number of the argument
    uint64_t columns = 1;
    std::string value, reference_value;
    Difference difference;

    std::string position() const;
  };

  void print_table() const;

  const plan::Plan &plan, &reference;
  const double bound;
  const bool from_reference, all;
  double worst = 0;
  std::vector<Row> rows;
  std::vector<std::string> alone, shapes; // the first few
  uint32_t matched = 0, unmatched = 0, kept_inputs = 0;
};

} // namespace k31::run
