// What a rank's memory holds, line by line. The lines add up to the plan's arenas and reserve exactly. The ranks of all pipeline
// stages have arenas of one size, that of the stage which needs most.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace k31 {

namespace plan {
struct Plan;
}

struct MemoryLine {
  std::string name;
  uint64_t bytes;
  std::string note;
};

struct MemoryTable {
  std::vector<MemoryLine> lines;
  uint64_t total = 0;

  // What options change: the caches grow with cached tokens and with sequences.
  uint64_t bytesPerToken = 0;    // of all paged caches
  uint64_t bytesPerSequence = 0; // of all state slots
  uint64_t cacheTokens = 0, sequences = 0;
  uint64_t cache = 0, state = 0; // bytes of both arenas
};

MemoryTable memoryTable(const plan::Plan &plan, uint32_t stage = 0);

// The table for people; those of all stages one below the other.
std::string text(const MemoryTable &table, llvm::StringRef title = "memory of one rank");
std::string memoryText(const plan::Plan &plan);

// 1536 -> "1.5 KiB"
std::string readableBytes(uint64_t bytes);

} // namespace k31
