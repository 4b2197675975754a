#include "runtime/base/plan_trailer.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include <cstring>

namespace k31 {

static constexpr char kEndMark[8] = {'K', '3', '1', 'P', 'E', 'N', 'D', '\0'};

std::array<std::byte, kPlanTrailerBytes> plan_trailer(std::span<const std::byte> flatbuffer) {
  std::array<std::byte, kPlanTrailerBytes> trailer;
  for (unsigned i = 0; i < 8; ++i)
    trailer[i] = static_cast<std::byte>(static_cast<uint64_t>(flatbuffer.size()) >> (8 * i));
  const Digest digest = hash128(flatbuffer);
  memcpy(trailer.data() + 8, digest.data(), digest.size());
  memcpy(trailer.data() + 24, kEndMark, sizeof(kEndMark));
  return trailer;
}

std::string seal(std::span<const std::byte> flatbuffer) {
  const auto trailer = plan_trailer(flatbuffer);
  std::string file(reinterpret_cast<const char *>(flatbuffer.data()), flatbuffer.size());
  return file.append(reinterpret_cast<const char *>(trailer.data()), trailer.size());
}

static tl::unexpected<Error> too_short(uint64_t bytes) {
  return fail(Code::invalid_input,
              cat("the file has ", bytes, " bytes, a plan has at least ", kPlanTrailerBytes, "; compile the plan again"));
}

// The mark and the length; `flatbuffer` bytes stand before the trailer.
static Result<void> check_trailer(std::span<const std::byte, kPlanTrailerBytes> trailer, uint64_t flatbuffer) {
  if (memcmp(trailer.data() + 24, kEndMark, sizeof(kEndMark)) != 0)
    return fail(Code::invalid_input, "the end mark K31PEND is missing: not a plan, or cut short; copy or compile the plan again");
  uint64_t length = 0;
  for (unsigned i = 0; i < 8; ++i)
    length |= static_cast<uint64_t>(trailer[i]) << (8 * i);
  if (length != flatbuffer)
    return fail(Code::invalid_input, cat("the trailer names ", length, " bytes of plan, the file holds ", flatbuffer,
                                         "; the file is damaged, copy or compile the plan again"));
  return {};
}

Result<void> check_trailer(const File &file) {
  if (file.size() < kPlanTrailerBytes)
    return too_short(file.size());
  std::array<std::byte, kPlanTrailerBytes> trailer;
  K31_TRY(file.read_at(file.size() - kPlanTrailerBytes, trailer));
  return check_trailer(trailer, file.size() - kPlanTrailerBytes);
}

Result<std::span<const std::byte>> unseal(std::span<const std::byte> file) {
  if (file.size() < kPlanTrailerBytes)
    return too_short(file.size());
  const std::span<const std::byte> flatbuffer = file.first(file.size() - kPlanTrailerBytes);
  const std::span<const std::byte, kPlanTrailerBytes> trailer = file.last<kPlanTrailerBytes>();
  K31_TRY(check_trailer(trailer, flatbuffer.size()));
  const Digest found = hash128(flatbuffer);
  Digest expected;
  memcpy(expected.data(), trailer.data() + 8, expected.size());
  if (found != expected)
    return fail(Code::invalid_input, cat("the plan's bytes hash to ", hex(found), ", its trailer says ", hex(expected),
                                         "; the file is damaged, copy or compile the plan again"));
  return flatbuffer;
}

Digest plan_hash(std::span<const std::byte> file) {
  Digest digest;
  memcpy(digest.data(), file.data() + file.size() - kPlanTrailerBytes + 8, digest.size());
  return digest;
}

Result<void> write_plan(const std::string &path, std::span<const std::byte> flatbuffer) {
  const auto trailer = plan_trailer(flatbuffer);
  const std::span<const std::byte> parts[] = {flatbuffer, trailer};
  return write_file(path, parts);
}

} // namespace k31
