// One rank of a mesh without the others, each of which is taken to send what this one has: rows keep their differences, so
// routing and selection cost what they cost in the mesh. For the time of a slice of a large mesh on one device; the numbers that
// come out mean nothing.
#pragma once
#include "runtime/comm/group.h"
#include <cstring>

namespace k31::comm {

class AloneGroup : public Group {
public:
  using Group::Group;
  Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (!mine.empty()) // which may stand in its place already
      memmove(all.data() + rank() * mine.size(), mine.data(), mine.size());
    fill(all, mine.size());
    return {};
  }
  Result<void> all_to_all(std::span<const std::byte> source, std::span<std::byte> dest) override {
    const size_t piece = source.size() / size();
    if (piece > 0)
      memcpy(dest.data() + rank() * piece, source.data() + rank() * piece, piece);
    fill(dest, piece);
    return {};
  }
  Result<void> broadcast(std::span<std::byte>, uint32_t) override { return {}; }
  Result<void> send(std::span<const std::byte>, uint32_t) override { return {}; }
  Result<void> receive(std::span<std::byte>, uint32_t) override { return {}; }

  Result<void> post(std::span<const std::byte>) override { return {}; }
  Result<void> collect(std::span<std::byte>, uint32_t) override { return {}; }

private:
  // This rank's piece in the place of each other one.
  void fill(std::span<std::byte> pieces, size_t piece) const {
    for (uint32_t i = 0; i < size() && piece > 0; ++i)
      if (i != rank())
        memcpy(pieces.data() + i * piece, pieces.data() + rank() * piece, piece);
  }
};

class AloneWorld : public World {
public:
  AloneWorld(uint32_t rank, uint32_t size) : rank_(rank), size_(size) {}
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  bool alone() const override { return true; }
  uint32_t local_rank() const override { return 0; }
  uint32_t local_size() const override { return 1; }
  Result<std::unique_ptr<Group>> group(const std::vector<uint32_t> &members, uint32_t place) override {
    return std::make_unique<AloneGroup>(place, uint32_t(members.size()));
  }

private:
  uint32_t rank_, size_;
};

} // namespace k31::comm
