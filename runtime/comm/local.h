// Ranks on one host as processes (or threads) that share memory. The memory is made before they are: a child inherits it.
#pragma once
#include "runtime/comm/group.h"
#include <atomic>

namespace k31::comm {

class LocalMemory {
public:
  static Result<std::unique_ptr<LocalMemory>> make(uint32_t ranks);
  ~LocalMemory();
  LocalMemory(const LocalMemory &) = delete;

  // What one rank shows the others of one group.
  struct alignas(64) Desk {
    std::atomic<uint64_t> arrived;             // exchanges that it has written its bytes for
    alignas(64) std::atomic<uint32_t> mail_to; // rank of the group that the mail is for, plus 1; 0: none
    alignas(64) std::atomic<uint64_t> posted;  // posts that it has written
    alignas(64) std::atomic<uint64_t> collected;
  };
  static constexpr size_t kSlot =
      256u << 10; // bytes of one exchange; a desk has two slots in turn, one for mail and one for posts
  static constexpr uint32_t kSlots = 4;
  static constexpr uint32_t kGroups = 32; // that a rank may make, of all sessions together

  uint32_t ranks() const { return ranks_; }
  Desk &desk(uint32_t group, uint32_t rank) const { return desks[group * ranks_ + rank]; }
  std::byte *slot(uint32_t group, uint32_t rank, uint32_t which) const {
    return slots + ((size_t(group) * ranks_ + rank) * kSlots + which) * kSlot;
  }

private:
  explicit LocalMemory(uint32_t ranks) : ranks_(ranks) {}
  uint32_t ranks_;
  void *map = nullptr;
  size_t bytes = 0;
  Desk *desks = nullptr;
  std::byte *slots = nullptr;
};

class LocalWorld : public World {
public:
  // The memory outlives the world and its groups.
  LocalWorld(const LocalMemory &memory, uint32_t rank) : memory(memory), rank_(rank) {}
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return memory.ranks(); }
  uint32_t local_rank() const override { return rank_; }
  uint32_t local_size() const override { return memory.ranks(); }
  Result<std::unique_ptr<Group>> group(const std::vector<uint32_t> &members, uint32_t place) override;

private:
  const LocalMemory &memory;
  uint32_t rank_, groups = 0;
};

} // namespace k31::comm
