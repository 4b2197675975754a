// What a plan's launches write, looked at from outside: all other bytes of its arenas are guard bands.
#pragma once
#include "runtime/session.h"

namespace k31::run {

// What was run without a fault.
struct WritesReport {
  uint32_t entries = 0, launches = 0;
  uint64_t bytes = 0; // of arenas that were compared around each launch
};

// Runs every entry of the rank's stage at its largest shape, with as many positions as the caches hold, and compares all arenas
// before and after each launch; the first byte that changes outside of the launch's outputs is an error that names both.
// Weights are compared once around each entry. The session is bound. Reads all arenas twice a launch: for plans with small
// caches.
Result<WritesReport> check_writes(Session &session, uint32_t stage);

} // namespace k31::run
