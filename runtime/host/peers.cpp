#include "runtime/host/peers.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/comm/wait.h"
#include "runtime/plan/peers.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace k31::host {
namespace {

// Between a kernel's looks at the flag of another rank.
bool wait(plan::PeerTable *table, uint32_t looks) {
  thread_local comm::Waiting waiting;
  if (looks == 0)
    waiting = {};
  if (waiting.on())
    return true;
  table->failed = 1;
  return false;
}

} // namespace

Result<void> Peers::connect(const plan::Plan &plan, const std::vector<Memory> &arenas, const comm::Communicator &ranks) {
  if (ranks.size() == 1)
    return {};
  K31_ASSIGN(const std::vector<PeerArea> areas, peer_areas(plan));
  for (const PeerArea &area : areas) {
    comm::Group &group = ranks.group(area.axis);
    K31_TRY(on_one_host(group, area.axis));
    struct Place {
      int process, file;
    };
    const Memory &arena = arenas[area.arena];
    K31_ASSIGN(const std::vector<Place> places, shown(group, Place{int(::getpid()), arena.file()}));
    auto *table = new (arena.bytes().data() + area.offset) plan::PeerTable();
    table->rank = int32_t(group.rank());
    table->wait = wait;
    for (uint32_t r = 0; r < group.size(); ++r) {
      std::byte *base = arena.bytes().data();
      if (r != group.rank() && !ranks.world().alone()) {
        auto mapped = map(places[r].process, places[r].file, arena.bytes().size());
        if (!mapped)
          return context(cat("the memory of rank ", r, " of axis ", plan::EnumNameMeshAxis(area.axis)),
                         std::move(mapped.error()));
        base = *mapped;
      }
      table->area[r] = uint64_t(reinterpret_cast<uintptr_t>(base + area.offset));
    }
  }
  return areas.empty() ? Result<void>() : ranks.all().all_gather({}, {}); // all tables stand
}

Result<std::byte *> Peers::map(int process, int file, uint64_t bytes) {
  for (const Mapped &known : maps)
    if (known.process == process && known.file == file)
      return known.bytes.data();
  const std::string path = cat("/proc/", process, "/fd/", file);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return system_error(cat("cannot open ", path, " for collectives by peer (--transport library needs no such file)"), errno);
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (at == MAP_FAILED)
    return system_error(cat("cannot map ", bytes, " bytes of ", path), error);
  maps.push_back({process, file, {static_cast<std::byte *>(at), bytes}});
  return static_cast<std::byte *>(at);
}

Peers::~Peers() {
  for (const Mapped &one : maps)
    munmap(one.bytes.data(), one.bytes.size());
}

} // namespace k31::host
