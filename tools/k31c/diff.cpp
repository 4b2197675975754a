// k31c diff: what differs between two plans, from what was asked for down to single commands.
#include "runtime/base/cat.h"
#include "runtime/plan/plan_file.h"
#include "tools/k31c/commands.h"
#include "tools/k31c/plan_facts.h"
#include "tools/k31c/plan_text.h"
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

using Json = nlohmann::ordered_json;

namespace k31::tool {
namespace {

struct Options {
  std::string a, b;
  bool all = false, json = false;
};

// What one plan says that the other does not; both when the thing is in one plan only.
struct Difference {
  std::vector<std::string> names; // things that differ in the same way
  bool inA, inB;
  Fields onlyA, onlyB;
};

struct GroupDifference {
  std::string group;
  size_t a, b, different; // things in each plan, and those that are not the same
  std::vector<Difference> differences;
};

Fields without(const Fields &fields, const Fields &other) {
  Fields rest;
  std::ranges::copy_if(fields, std::back_inserter(rest),
                       [&](const std::string &field) { return std::ranges::find(other, field) == other.end(); });
  return rest;
}

GroupDifference compare(const FactGroup &a, const FactGroup &b) {
  GroupDifference result{a.name, a.facts.size(), b.facts.size(), 0, {}};
  const auto add = [&](const std::string &name, const Fields *one, const Fields *other) {
    const Difference found{{name},
                           one != nullptr,
                           other != nullptr,
                           without(one ? *one : Fields(), other ? *other : Fields()),
                           without(other ? *other : Fields(), one ? *one : Fields())};
    ++result.different;
    const auto same = std::ranges::find_if(result.differences, [&](const Difference &d) {
      return d.inA == found.inA && d.inB == found.inB && d.onlyA == found.onlyA && d.onlyB == found.onlyB;
    });
    if (same == result.differences.end())
      result.differences.push_back(found);
    else
      same->names.push_back(name);
  };
  for (const auto &[name, fields] : a.facts) {
    const auto other = b.facts.find(name);
    if (other == b.facts.end())
      add(name, &fields, nullptr);
    else if (other->second != fields)
      add(name, &fields, &other->second);
  }
  for (const auto &[name, fields] : b.facts)
    if (!a.facts.contains(name))
      add(name, nullptr, &fields);
  return result;
}

std::string listText(const Fields &fields) {
  std::string out;
  for (const std::string &field : fields)
    out += (out.empty() ? "" : ", ") + field;
  return out.empty() ? "nothing" : out;
}

// The first names, and how many more.
std::string namesText(const std::vector<std::string> &names, bool all) {
  constexpr size_t most = 3;
  std::string out;
  for (size_t i = 0; i < names.size() && (all || i < most); ++i)
    out += (i ? ", " : "") + names[i];
  return !all && names.size() > most ? cat(out, " and ", names.size() - most, " more") : out;
}

void print(const GroupDifference &group, bool all) {
  constexpr size_t most = 12;
  std::printf("\n%s\n", group.group.c_str());
  for (size_t i = 0; i < group.differences.size(); ++i) {
    if (!all && i == most) {
      std::printf("  and %zu more kinds of difference; --all shows them\n", group.differences.size() - most);
      break;
    }
    const Difference &d = group.differences[i];
    std::printf("  %s: ", namesText(d.names, all).c_str());
    if (!d.inB)
      std::printf("only in A, %s\n", listText(d.onlyA).c_str());
    else if (!d.inA)
      std::printf("only in B, %s\n", listText(d.onlyB).c_str());
    else
      std::printf("%s -> %s\n", listText(d.onlyA).c_str(), listText(d.onlyB).c_str());
  }
}

Json json(const std::vector<GroupDifference> &groups, bool equal) {
  Json out{{"equal", equal}, {"groups", Json::object()}};
  for (const GroupDifference &group : groups) {
    Json &one = out["groups"][group.group] =
        Json{{"a", group.a}, {"b", group.b}, {"different", group.different}, {"differences", Json::array()}};
    for (const Difference &d : group.differences)
      one["differences"].push_back(
          {{"names", d.names}, {"a", d.inA ? Json(d.onlyA) : Json()}, {"b", d.inB ? Json(d.onlyB) : Json()}});
  }
  return out;
}

int diff(const Options &o) {
  auto a = PlanFile::open(o.a), b = PlanFile::open(o.b);
  for (const auto *file : {&a, &b})
    if (!*file)
      return fail(1, file->error().message);
  // An entry that only one plan has is one difference, not one a command.
  std::set<std::string> shared, entriesA;
  for (const plan::Entry *entry : *a->plan().entries())
    entriesA.insert(entry->name()->str());
  for (const plan::Entry *entry : *b->plan().entries())
    if (entriesA.contains(entry->name()->str()))
      shared.insert(entry->name()->str());
  const std::vector<FactGroup> factsA = factsOf(a->plan(), shared), factsB = factsOf(b->plan(), shared);
  std::vector<GroupDifference> groups;
  size_t different = 0;
  for (size_t i = 0; i < factsA.size(); ++i) {
    groups.push_back(compare(factsA[i], factsB[i]));
    different += groups.back().different;
  }
  const bool sameKey = a->plan().key()->digest()->string_view() == b->plan().key()->digest()->string_view();
  if (o.json) {
    std::puts(json(groups, different == 0).dump(2).c_str());
    return 0;
  }
  std::printf("A %s\nB %s\n", o.a.c_str(), o.b.c_str());
  if (different == 0) {
    std::printf("the plans are equal%s\n", sameKey ? ", and so are their keys" : " in all but the digest of their keys");
    return 0;
  }
  std::printf("the plans differ\n\n  %-10s %10s %10s %10s\n", "", "in A", "in B", "different");
  for (const GroupDifference &group : groups)
    std::printf("  %-10s %10zu %10zu %10zu\n", group.group.c_str(), group.a, group.b, group.different);
  for (const GroupDifference &group : groups)
    if (group.different)
      print(group, o.all);
  return 0;
}

} // namespace

Command addDiff(CLI::App &app) {
  auto options = std::make_shared<Options>();
  Options &o = *options;
  CLI::App *command = app.add_subcommand("diff", "Say what differs between two plans.");
  command->footer(
      "First how many things of each kind there are and differ, then each difference once, with what has it. Kernels\n"
      "are named by a hash of what they were made from: equal names are equal code. Addresses and reasons are not compared:\n"
      "addresses move with every size. The exit code is 0 when both plans can be read, whether they differ or not.\n"
      "Example:\n  k31c diff old.k31 new.k31");
  command->add_option("a", o.a, "A plan file")->required()->type_name("A");
  command->add_option("b", o.b, "Another one")->required()->type_name("B");
  command->add_flag("--all", o.all, "Every difference and every name, however many there are");
  command->add_flag("--json", o.json, "As JSON: counts and all differences by kind");
  return {command, [options] { return diff(*options); }};
}

} // namespace k31::tool
