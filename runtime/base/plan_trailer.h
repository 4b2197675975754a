// Version and trailer of a plan file: what follows the FlatBuffer, shared by the compiler that writes it and the runtime that
// checks it.
//
// | bytes | content                                              |
// |-------|------------------------------------------------------|
// | 8     | length of the FlatBuffer, uint64 little endian       |
// | 16    | XXH3-128 of the FlatBuffer, canonical (big endian)   |
// | 8     | "K31PEND\0"                                          |
#pragma once
#include "runtime/base/hash.h"
#include "runtime/base/result.h"
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace k31 {

class File;

constexpr uint16_t kPlanMajor = 1;
constexpr uint16_t kPlanMinor = 5;

constexpr size_t kPlanTrailerBytes = 32;

std::array<std::byte, kPlanTrailerBytes> plan_trailer(std::span<const std::byte> flatbuffer);

// The bytes of a whole plan file.
std::string seal(std::span<const std::byte> flatbuffer);

// Mark and length, of a file of which no more is read.
Result<void> check_trailer(const File &file);

// Checks the trailer of a whole file and returns the FlatBuffer before it.
Result<std::span<const std::byte>> unseal(std::span<const std::byte> file);

// What the trailer of a whole file, which unseal has checked, says of the bytes before it.
Digest plan_hash(std::span<const std::byte> file);

// Writes a plan file: whole or not at all.
Result<void> write_plan(const std::string &path, std::span<const std::byte> flatbuffer);

} // namespace k31
