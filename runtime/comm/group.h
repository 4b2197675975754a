// Ranks that act together, and the world that makes such groups. Three kinds: processes of one host with shared memory
// (runtime/comm/local.h), MPI (runtime/comm/mpi.h), and one rank without the others (runtime/comm/alone.h).
//
// All is about bytes of the host. Members of a group make the same calls in the same order with the same sizes; a call returns
// when this rank's part is done. Waits give the processor to others, so that more ranks than cores get on. A rank that fails does
// not come back from here: the watchdog (runtime/comm/watchdog.h) ends the process.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace k31::comm {

class Group {
public:
  Group(uint32_t rank, uint32_t size) : rank_(rank), size_(size) {}
  virtual ~Group() = default;
  Group(const Group &) = delete;

  uint32_t rank() const { return rank_; } // the coordinate on the axis
  uint32_t size() const { return size_; }

  // Piece i of `all` is rank i's `mine`. `mine` may be its own piece of `all`. Of no bytes: a barrier.
  virtual Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Piece i of `source` goes to rank i; piece i of `dest` comes from rank i. They do not overlap.
  virtual Result<void> all_to_all(std::span<const std::byte> source, std::span<std::byte> dest) = 0;
  // Of piece i only the first live[i] bytes; what is behind them in the destination stays as it is. Who cannot, moves all.
  virtual Result<void> exchange(std::span<const std::byte> source, std::span<std::byte> dest, std::span<const uint64_t> live) {
    return all_to_all(source, dest);
  }
  virtual Result<void> broadcast(std::span<std::byte> bytes, uint32_t root) = 0;
  virtual Result<void> send(std::span<const std::byte> bytes, uint32_t to) = 0;
  virtual Result<void> receive(std::span<std::byte> bytes, uint32_t from) = 0;

  // Leaves bytes for all others and goes on; each takes them by collect(), in their order. Up to kPosts wait to be taken before
  // this rank waits. One rank of a group posts.
  static constexpr uint32_t kPosts = 8;
  static constexpr size_t kPostBytes = 32u << 10; // at most
  virtual Result<void> post(std::span<const std::byte> bytes) = 0;
  virtual Result<void> collect(std::span<std::byte> bytes, uint32_t from) = 0;

  // Whether rank `other` of the group is on another host, as the plan's mesh has it.
  bool across(uint32_t other) const { return !hosts.empty() && hosts[other] != hosts[rank_]; }
  void place_on(std::vector<uint32_t> hosts_of_ranks) { hosts = std::move(hosts_of_ranks); }

private:
  uint32_t rank_, size_;
  std::vector<uint32_t> hosts;
};

class World {
public:
  virtual ~World() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // One rank of a mesh without the others (runtime/comm/alone.h).
  virtual bool alone() const { return false; }
  // Among the ranks of this host.
  virtual uint32_t local_rank() const = 0;
  virtual uint32_t local_size() const = 0;
  // Every rank calls it, in the same order, each with the members of its own group in order and its place among them.
  virtual Result<std::unique_ptr<Group>> group(const std::vector<uint32_t> &members, uint32_t place) = 0;
};

} // namespace k31::comm
