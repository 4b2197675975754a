#include "runtime/comm/local.h"
#include "runtime/base/file.h"
#include "runtime/comm/wait.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <sys/mman.h>

namespace k31::comm {
namespace {

constexpr size_t kSlot = LocalMemory::kSlot;
constexpr uint32_t kMail = 2, kBoard = 3; // slots behind the two of exchanges
static_assert(Group::kPosts * Group::kPostBytes <= kSlot);

// An exchange: everybody writes its slot and arrives; when all have arrived everybody reads the others' slots. The two slots are
// used in turn, so one arrival an exchange is enough: who writes a slot again has seen everybody arrive at the exchange between,
// and so finish reading.
class LocalGroup : public Group {
public:
  LocalGroup(const LocalMemory &memory, uint32_t number, std::vector<uint32_t> members, uint32_t place)
      : Group(place, uint32_t(members.size())), memory(memory), number(number), members(std::move(members)) {}

  Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const size_t bytes = mine.size();
    if (bytes > 0 && mine.data() != all.data() + rank() * bytes)
      memmove(all.data() + rank() * bytes, mine.data(), bytes);
    const std::byte *own = all.data() + rank() * bytes;
    size_t at = 0;
    do {
      const size_t n = std::min(kSlot, bytes - at);
      if (n > 0)
        memcpy(slot(rank()), own + at, n);
      K31_TRY(arrive());
      for (uint32_t r = 0; r < size(); ++r)
        if (r != rank() && n > 0)
          memcpy(all.data() + r * bytes + at, slot(r), n);
      next();
      at += n;
    } while (at < bytes);
    return {};
  }

  Result<void> all_to_all(std::span<const std::byte> source, std::span<std::byte> dest) override {
    const size_t piece = source.size() / size(), step = kSlot / size();
    for (size_t at = 0; at < piece; at += step) {
      const size_t n = std::min(step, piece - at);
      for (uint32_t r = 0; r < size(); ++r)
        memcpy(slot(rank()) + r * step, source.data() + r * piece + at, n);
      K31_TRY(arrive());
      for (uint32_t r = 0; r < size(); ++r)
        memcpy(dest.data() + r * piece + at, slot(r) + rank() * step, n);
      next();
    }
    return {};
  }

  // What goes to the ranks follows each other without gaps, behind how much of it is for each: everybody sees how many exchanges
  // the longest takes.
  Result<void> exchange(std::span<const std::byte> source, std::span<std::byte> dest, std::span<const uint64_t> live) override {
    const uint64_t piece = source.size() / size(), head = size() * sizeof(uint64_t), room = kSlot - head;
    memcpy(dest.data() + rank() * piece, source.data() + rank() * piece, live[rank()]);
    uint64_t longest = 0;
    for (uint64_t at = 0; at == 0 || at < longest; at += room) {
      auto *counts = reinterpret_cast<uint64_t *>(slot(rank()));
      std::copy(live.begin(), live.end(), counts);
      counts[rank()] = 0;
      uint64_t begin = 0; // of what is for rank r
      for (uint32_t r = 0; r < size(); begin += counts[r++])
        if (const auto [from, to] = window(begin, begin + counts[r], at, at + room); from < to)
          memcpy(slot(rank()) + head + from - at, source.data() + r * piece + from - begin, to - from);
      K31_TRY(arrive());
      for (uint32_t r = 0; r < size(); ++r) {
        counts = reinterpret_cast<uint64_t *>(slot(r));
        begin = std::accumulate(counts, counts + rank(), uint64_t{0});
        longest = std::max(longest, std::accumulate(counts + rank(), counts + size(), begin));
        if (const auto [from, to] = window(begin, begin + counts[rank()], at, at + room); from < to)
          memcpy(dest.data() + r * piece + from - begin, slot(r) + head + from - at, to - from);
      }
      next();
    }
    return {};
  }

  Result<void> broadcast(std::span<std::byte> bytes, uint32_t root) override {
    for (size_t at = 0; at < bytes.size(); at += kSlot) {
      const size_t n = std::min(kSlot, bytes.size() - at);
      if (rank() == root)
        memcpy(slot(root), bytes.data() + at, n);
      K31_TRY(arrive());
      if (rank() != root)
        memcpy(bytes.data() + at, slot(root), n);
      next();
    }
    return {};
  }

  // Mail is taken out before the next may be put in.
  Result<void> send(std::span<const std::byte> bytes, uint32_t to) override {
    std::atomic<uint32_t> &mail_to = desk(rank()).mail_to;
    for (size_t at = 0; at < bytes.size(); at += kSlot) {
      K31_TRY(wait_until([&]() -> Result<bool> { return mail_to.load(std::memory_order_acquire) == 0; }));
      memcpy(memory.slot(number, members[rank()], kMail), bytes.data() + at, std::min(kSlot, bytes.size() - at));
      mail_to.store(to + 1, std::memory_order_release);
    }
    return {};
  }

  Result<void> receive(std::span<std::byte> bytes, uint32_t from) override {
    std::atomic<uint32_t> &mail_to = desk(from).mail_to;
    for (size_t at = 0; at < bytes.size(); at += kSlot) {
      K31_TRY(wait_until([&]() -> Result<bool> { return mail_to.load(std::memory_order_acquire) == rank() + 1; }));
      memcpy(bytes.data() + at, memory.slot(number, members[from], kMail), std::min(kSlot, bytes.size() - at));
      mail_to.store(0, std::memory_order_release);
    }
    return {};
  }

  // The posts of a rank take turns on its board.
  Result<void> post(std::span<const std::byte> bytes) override {
    const uint64_t number = desk(rank()).posted.load(std::memory_order_relaxed);
    for (uint32_t r = 0; r < size(); ++r)
      if (r != rank())
        K31_TRY(
            wait_until([&]() -> Result<bool> { return desk(r).collected.load(std::memory_order_acquire) + kPosts > number; }));
    memcpy(board(rank(), number), bytes.data(), bytes.size());
    desk(rank()).posted.store(number + 1, std::memory_order_release);
    return {};
  }

  Result<void> collect(std::span<std::byte> bytes, uint32_t from) override {
    const uint64_t number = desk(rank()).collected.load(std::memory_order_relaxed);
    K31_TRY(wait_until([&]() -> Result<bool> { return desk(from).posted.load(std::memory_order_acquire) > number; }));
    memcpy(bytes.data(), board(from, number), bytes.size());
    desk(rank()).collected.store(number + 1, std::memory_order_release);
    return {};
  }

private:
  std::byte *board(uint32_t rank, uint64_t number) const {
    return memory.slot(this->number, members[rank], kBoard) + number % kPosts * kPostBytes;
  }
  // What two ranges have in common; nothing when the first is not below the second.
  static std::pair<uint64_t, uint64_t> window(uint64_t begin, uint64_t end, uint64_t from, uint64_t to) {
    return {std::max(begin, from), std::min(end, to)};
  }
  LocalMemory::Desk &desk(uint32_t rank) const { return memory.desk(number, members[rank]); }
  std::byte *slot(uint32_t rank) const { return memory.slot(number, members[rank], uint32_t(exchanges & 1)); }
  void next() { ++exchanges; }

  Result<void> arrive() {
    desk(rank()).arrived.store(exchanges + 1, std::memory_order_release);
    for (uint32_t r = 0; r < size(); ++r)
      K31_TRY(wait_until([&]() -> Result<bool> { return desk(r).arrived.load(std::memory_order_acquire) > exchanges; }));
    return {};
  }

  const LocalMemory &memory;
  uint32_t number; // of the group: equal on all members, as groups are made in the same order everywhere
  std::vector<uint32_t> members;
  uint64_t exchanges = 0; // that this rank has finished
};

} // namespace

Result<std::unique_ptr<LocalMemory>> LocalMemory::make(uint32_t ranks) {
  std::unique_ptr<LocalMemory> made(new LocalMemory(ranks));
  const size_t desks = size_t(kGroups) * ranks * sizeof(Desk), begin = (desks + 4095) / 4096 * 4096;
  made->bytes = begin + size_t(kGroups) * ranks * LocalMemory::kSlots * kSlot;
  // Zero, and only pages that are used take memory.
  void *map = mmap(nullptr, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED)
    return system_error(cat("cannot make the shared memory of ", ranks, " ranks"), errno);
  made->map = map;
  made->desks = new (map) Desk[size_t(kGroups) * ranks]();
  made->slots = static_cast<std::byte *>(map) + begin;
  return made;
}

LocalMemory::~LocalMemory() {
  if (map)
    munmap(map, bytes);
}

Result<std::unique_ptr<Group>> LocalWorld::group(const std::vector<uint32_t> &members, uint32_t place) {
  if (groups == LocalMemory::kGroups)
    return fail(Code::unsupported, cat("a process made more than ", LocalMemory::kGroups,
                                       " groups of ranks; sessions of several ranks can be bound ", LocalMemory::kGroups / 8,
                                       " times in a process"));
  if (members.size() > kSlot / 64)
    return fail(Code::unsupported, cat(members.size(), " ranks on one host, expected at most ", kSlot / 64));
  return std::make_unique<LocalGroup>(memory, groups++, members, place);
}

} // namespace k31::comm
