// XXH3-128: shows damage and names equal things; it is no defence against an adversary.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace k31 {

using Digest = std::array<std::byte, 16>; // canonical form, big endian

class Hasher {
public:
  Hasher();
  ~Hasher();
  Hasher(Hasher &&) = delete;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  Digest digest() const;

private:
  void *state;
};

Digest hash128(std::span<const std::byte> bytes);
std::string hex(const Digest &digest); // 32 lower-case digits

} // namespace k31
