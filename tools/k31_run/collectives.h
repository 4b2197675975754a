// What the collectives of timed runs move: between ranks of one host, and between hosts as the plan's mesh has them.
#pragma once
#include "runtime/comm/traffic.h"
#include "runtime/session.h"
#include <nlohmann/json.hpp>

namespace k31::run {

class Collectives {
public:
  // Around `runs` equal runs of the entry. On a mesh all ranks call both; stop() adds up what they moved.
  void start(const Session &session);
  Result<void> stop(const Session &session, uint32_t entry, uint64_t runs);

  bool any() const;
  void print() const;
  nlohmann::ordered_json json() const;

private:
  comm::TrafficTable table; // of one run
  bool counted = false;     // else a GPU's: capacity alone
};

} // namespace k31::run
