#include "tools/k31_run/collectives.h"
#include "runtime/base/cat.h"
#include "runtime/comm/communicator.h"
#include "runtime/plan/dtype.h"
#include <cstdio>

namespace k31::run {
namespace {

// The least that a rank hands to the others of its group, of whole pieces: what a GPU's library moves at capacity.
void add_capacity(const plan::Collective &c, const comm::Group &group, comm::Traffic &traffic) {
  const uint64_t bytes = c.count() * bytes_of(c.dtype()), size = group.size();
  const auto to_each = [&](uint64_t each) {
    for (uint32_t r = 0; r < size; ++r)
      if (r != group.rank())
        traffic.add(group.across(r), each, 0);
  };
  ++traffic.calls;
  switch (c.op()) {
  case plan::CollectiveOp::all_reduce:
    return to_each(2 * bytes / size);
  case plan::CollectiveOp::all_gather:
    return to_each(bytes);
  case plan::CollectiveOp::broadcast:
    return group.rank() == 0 ? to_each(bytes) : void();
  case plan::CollectiveOp::send:
    return traffic.add(group.across(c.peer()), bytes, 0);
  case plan::CollectiveOp::recv:
    return;
  default:
    return to_each(bytes / size);
  }
}

template <class Table, class F> void each(Table &table, F &&f) {
  for (const plan::CollectiveOp op : plan::EnumValuesCollectiveOp())
    for (const plan::MeshAxis axis : plan::EnumValuesMeshAxis())
      f(op, axis, table.at(op, axis));
}

// a = f(a, b) for every number of two tables.
template <class F> void combine(comm::TrafficTable &a, const comm::TrafficTable &b, F &&f) {
  each(a, [&](plan::CollectiveOp op, plan::MeshAxis axis, comm::Traffic &x) {
    const comm::Traffic &y = b.at(op, axis);
    x.calls = f(x.calls, y.calls);
    x.node = {f(x.node.capacity, y.node.capacity), f(x.node.live, y.node.live)};
    x.across = {f(x.across.capacity, y.across.capacity), f(x.across.live, y.across.live)};
  });
}

} // namespace

void Collectives::start(const Session &session) {
  const comm::TrafficTable *now = session.traffic();
  counted = now != nullptr;
  table = now ? *now : comm::TrafficTable{};
}

Result<void> Collectives::stop(const Session &session, uint32_t entry, uint64_t runs) {
  const comm::Communicator &ranks = *session.communicator();
  if (counted) {
    comm::TrafficTable moved = *session.traffic();
    combine(moved, table, [runs](uint64_t now, uint64_t before) { return (now - before) / runs; });
    table = moved;
  } else {
    const plan::Entry &e = *session.plan().entries()->Get(entry);
    for (uint32_t i = 0; i < e.commands()->size(); ++i)
      if (e.commands_type()->GetEnum<plan::Command>(i) == plan::Command::Collective) {
        const auto &c = *e.commands()->GetAs<plan::Collective>(i);
        if (const comm::Group &group = ranks.group(c.axis()); group.size() > 1)
          add_capacity(c, group, table.at(c.op(), c.axis()));
      }
  }
  if (ranks.size() == 1 || ranks.world().alone())
    return {};
  std::vector<comm::TrafficTable> all(ranks.size());
  K31_TRY(ranks.all().all_gather(std::as_bytes(std::span(&table, 1)), std::as_writable_bytes(std::span(all))));
  table = {};
  for (const comm::TrafficTable &one : all)
    combine(table, one, [](uint64_t a, uint64_t b) { return a + b; });
  return {};
}

bool Collectives::any() const {
  uint64_t calls = 0;
  each(table, [&](auto, auto, const comm::Traffic &t) { calls += t.calls; });
  return calls > 0;
}

void Collectives::print() const {
  std::printf("  %14s %14s %14s %14s %8s  %s\n", "capacity", "moved", "capacity", "moved", "calls",
              "collective, bytes of one run");
  std::printf("  %29s %29s\n", "between ranks of a host", "between hosts");
  const auto moved = [this](const comm::Moved &bytes) { return counted ? cat(bytes.live) : std::string("-"); };
  each(table, [&](plan::CollectiveOp op, plan::MeshAxis axis, const comm::Traffic &t) {
    if (t.calls)
      std::printf("  %14s %14s %14s %14s %8llu  %s over %s\n", cat(t.node.capacity).c_str(), moved(t.node).c_str(),
                  cat(t.across.capacity).c_str(), moved(t.across).c_str(), static_cast<unsigned long long>(t.calls),
                  plan::EnumNameCollectiveOp(op), plan::EnumNameMeshAxis(axis));
  });
}

nlohmann::ordered_json Collectives::json() const {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  const auto bytes = [this](const comm::Moved &b) {
    return Json{{"capacity", b.capacity}, {"moved", counted ? Json(b.live) : Json()}};
  };
  each(table, [&](plan::CollectiveOp op, plan::MeshAxis axis, const comm::Traffic &t) {
    if (t.calls)
      list.push_back({{"op", plan::EnumNameCollectiveOp(op)},
                      {"axis", plan::EnumNameMeshAxis(axis)},
                      {"calls", t.calls},
                      {"within_hosts", bytes(t.node)},
                      {"between_hosts", bytes(t.across)}});
  });
  return list;
}

} // namespace k31::run
