#include "runtime/engine/state_image.h"
#include "runtime/base/cat.h"
#include "runtime/base/hash.h"
#include <algorithm>
#include <cstring>

namespace k31::engine {
namespace {

constexpr char kMagic[8] = {'K', '3', '1', 'S', 'T', 'A', 'T', 'E'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeader = 8 + 2 * 4 + 2 * 8 + 2 * 16, kTrailer = 16;
constexpr const char *kRemedy = "; run the tokens again instead";

void put(std::vector<std::byte> &out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    out.push_back(std::byte(value >> (8 * i)));
}

uint64_t get(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= uint64_t(bytes[i]) << (8 * i);
  return value;
}

Digest digest_of(const StateLayout &layout) {
  std::vector<std::byte> bytes;
  put(bytes, layout.block_tokens, 4);
  for (const StateMember &m : layout.members) {
    put(bytes, uint64_t(m.kind), 1);
    put(bytes, m.layer, 4);
    put(bytes, m.unit_bytes, 8);
  }
  return hash128(bytes);
}

tl::unexpected<Error> refuse(const std::string &what) { return fail(Code::invalid_input, "saved state: " + what + kRemedy); }

} // namespace

Result<std::vector<std::byte>> save_state(StateMemory &memory, const StatePlace &place, std::span<const int32_t> tokens,
                                          const std::string &non_finite) {
  if (place.position == 0 || place.position > tokens.size())
    return fail(Code::invalid_input, cat("a state of ", place.position, " positions of a sequence of ", tokens.size(),
                                         " tokens cannot be saved; run some tokens first"));
  if (!non_finite.empty())
    return fail(Code::invalid_input, cat("the state at position ", place.position, " holds values that are not finite (",
                                         non_finite, "); it is not saved"));
  K31_ASSIGN(const std::vector<std::byte> caches, memory.read(place));
  const StateLayout &layout = memory.layout();
  std::vector<std::byte> out;
  out.reserve(kHeader + layout.digest.size() + caches.size() + kTrailer);
  const auto append = [&](std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
  append(std::as_bytes(std::span(kMagic)));
  put(out, kVersion, 4);
  put(out, layout.digest.size(), 4);
  put(out, place.position, 8);
  put(out, caches.size(), 8);
  append(digest_of(layout));
  append(hash128(std::as_bytes(tokens.first(place.position))));
  append(std::as_bytes(std::span(layout.digest)));
  append(caches);
  append(hash128(out));
  return out;
}

Result<SavedState> check_state(const StateMemory &memory, std::span<const std::byte> image, std::span<const int32_t> tokens) {
  const StateLayout &layout = memory.layout();
  if (image.size() < kHeader + kTrailer || memcmp(image.data(), kMagic, sizeof kMagic) != 0)
    return refuse(cat(image.size(), " bytes that do not start with K31STATE, expected an image that this engine saved"));
  const uint64_t version = get(image.subspan(8, 4)), digest_length = get(image.subspan(12, 4)),
                 position = get(image.subspan(16, 8)), length = get(image.subspan(24, 8));
  if (version != kVersion)
    return refuse(cat("version ", version, ", expected ", kVersion));
  const uint64_t rest = image.size() - kHeader - kTrailer;
  if (digest_length > rest || length != rest - digest_length)
    return refuse(cat("its header names ", length, " bytes of caches, the image of ", image.size(), " bytes holds ",
                      digest_length > rest ? 0 : rest - digest_length, ": it is cut short or damaged"));
  const std::span<const std::byte> body = image.first(image.size() - kTrailer);
  Digest expected, found = hash128(body);
  memcpy(expected.data(), image.data() + body.size(), kTrailer);
  if (found != expected)
    return refuse(cat("its bytes hash to ", hex(found), ", its trailer says ", hex(expected), ": it is damaged"));

  const std::string digest(reinterpret_cast<const char *>(image.data() + kHeader), digest_length);
  if (digest != layout.digest)
    return refuse(cat("it was saved by plan ", quote(digest), ", this plan is ", quote(layout.digest)));
  if (const Digest ours = digest_of(layout); memcmp(ours.data(), image.data() + 32, ours.size()) != 0)
    return refuse("its caches are laid out in another way than this plan's");
  if (position == 0 || position > tokens.size())
    return refuse(cat("it is of ", position, " positions, the sequence has ", tokens.size(), " tokens"));
  const Digest of_tokens = hash128(std::as_bytes(tokens.first(position)));
  if (memcmp(of_tokens.data(), image.data() + 48, of_tokens.size()) != 0)
    return refuse(cat("it is of other tokens than the first ", position, " of the sequence"));
  if (length != memory.bytes_of(uint32_t(position)))
    return refuse(
        cat("it holds ", length, " bytes of caches, ", position, " positions have ", memory.bytes_of(uint32_t(position))));
  return SavedState{uint32_t(position), image.subspan(kHeader + digest_length, length)};
}

} // namespace k31::engine
