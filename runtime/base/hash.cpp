#include "runtime/base/hash.h"
#include <cstring>
#include <new>
#include <xxhash.h>

namespace k31 {

static Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t form;
  XXH128_canonicalFromHash(&form, hash);
  Digest digest;
  static_assert(sizeof(form) == sizeof(digest));
  memcpy(digest.data(), &form, sizeof(form));
  return digest;
}

Hasher::Hasher() : state(XXH3_createState()) {
  if (!state)
    throw std::bad_alloc();
  XXH3_128bits_reset(static_cast<XXH3_state_t *>(state));
}
Hasher::~Hasher() { XXH3_freeState(static_cast<XXH3_state_t *>(state)); }

void Hasher::update(std::span<const std::byte> bytes) {
  if (!bytes.empty())
    XXH3_128bits_update(static_cast<XXH3_state_t *>(state), bytes.data(), bytes.size());
}
Digest Hasher::digest() const { return canonical(XXH3_128bits_digest(static_cast<XXH3_state_t *>(state))); }

Digest hash128(std::span<const std::byte> bytes) { return canonical(XXH3_128bits(bytes.data(), bytes.size())); }

std::string hex(const Digest &digest) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (std::byte b : digest) {
    text += digits[static_cast<unsigned>(b) >> 4];
    text += digits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

} // namespace k31
