#include "tools/k31_run/verify_report.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <cstdio>

namespace k31::run {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string kernel(const plan::Plan &plan, const plan::Launch &launch) {
  return plan.kernels()->Get(launch.kernel())->name()->str();
}

} // namespace

std::string VerifyReport::Row::position() const {
  return columns == 1 ? cat("[", difference.at, "]") : cat("[", difference.at / columns, ", ", difference.at % columns, "]");
}

void VerifyReport::add(const Pair &pair, const std::string &entry) {
  if (pair.a.columns != pair.b.columns) {
    if (shapes.size() < 8)
      shapes.push_back(cat(pair.label, ": ", pair.a.shape(), " and ", pair.b.shape()));
    return;
  }
  const Difference d = compare(pair.a, pair.b);
  const bool wrong = d.relative > bound;
  if (!wrong && !(d.relative > 0 && all) && !(d.relative > worst))
    return;
  worst = std::max(worst, d.relative);
  rows.push_back({pair.label, kernel(plan, *pair.plan), kernel(reference, *pair.reference), pair.a.shape(), pair.b.shape(), entry,
                  pair.output, pair.a.columns, d.compared ? pair.a.text(d.at) : "", d.compared ? pair.b.text(d.at) : "", d});
}

void VerifyReport::add(const LockstepReport &ran) {
  matched += ran.matched, unmatched += ran.unmatched, kept_inputs += ran.kept_inputs;
  for (const std::string &label : ran.alone)
    if (alone.size() < 8 && std::find(alone.begin(), alone.end(), label) == alone.end())
      alone.push_back(label);
}

Result<void> VerifyReport::print() const {
  const auto first = std::find_if(rows.begin(), rows.end(), [&](const Row &row) { return row.difference.relative > bound; });
  if (all)
    print_table();
  const auto largest = std::max_element(rows.begin(), rows.end(),
                                        [](const Row &a, const Row &b) { return a.difference.relative < b.difference.relative; });
  std::printf("%u operations compared%s, bound %s: largest difference %s%s\n", matched,
              from_reference ? ", each on the reference's inputs" : ", each plan on its own results", number(bound).c_str(),
              largest == rows.end() ? "0" : number(largest->difference.relative).c_str(),
              largest == rows.end() ? "" : cat(" at ", largest->label).c_str());
  if (unmatched) {
    std::string names;
    for (const std::string &label : alone)
      names += (names.empty() ? "" : ", ") + label;
    std::printf("%u operations have no counterpart in the reference: %s%s\n", unmatched, names.c_str(),
                unmatched > alone.size() ? ", ..." : "");
  }
  for (const std::string &text : shapes)
    std::printf("not compared, the shapes differ: %s\n", text.c_str());
  if (kept_inputs)
    std::printf("%u inputs were not taken from the reference: their types or sizes differ\n", kept_inputs);
  if (!matched)
    return fail(Code::invalid_input, "no operation of the plan has a counterpart in the reference; compile both with this k31c");
  if (first == rows.end())
    return {};
  const Row &row = *first;
  std::printf("first operation that differs: %s (%s)\n", row.label.c_str(), row.entry.c_str());
  std::printf("  plan:      %s, argument %u, %s\n", row.kernel.c_str(), row.output, row.shape.c_str());
  std::printf("  reference: %s, %s\n", row.reference_kernel.c_str(), row.reference_shape.c_str());
  std::printf("  at %s: %s against %s; %llu of %llu values differ, largest magnitude %s, difference %s\n", row.position().c_str(),
              row.value.c_str(), row.reference_value.c_str(), static_cast<unsigned long long>(row.difference.differing),
              static_cast<unsigned long long>(row.difference.compared), number(row.difference.scale).c_str(),
              number(row.difference.relative).c_str());
  return fail(Code::invalid_input, cat("the plans differ, first at ", quote(row.label), ": ", number(row.difference.relative),
                                       " is above the bound ", number(bound)));
}

void VerifyReport::print_table() const {
  std::vector<const Row *> sorted;
  for (const Row &row : rows)
    if (row.difference.relative > 0)
      sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(), [](const Row *a, const Row *b) { // equal ones in the order of the runs
    return a->difference.relative != b->difference.relative ? a->difference.relative > b->difference.relative : a < b;
  });
  if (sorted.size() > 50)
    sorted.resize(50);
  std::printf("%-12s %-16s %-14s %-14s %-40s %s\n", "difference", "at", "plan", "reference", "operation", "kernel");
  for (const Row *row : sorted)
    std::printf("%-12s %-16s %-14s %-14s %-40s %s\n", number(row->difference.relative).c_str(), row->position().c_str(),
                row->value.c_str(), row->reference_value.c_str(), row->label.c_str(), row->kernel.c_str());
}

} // namespace k31::run
