// Headers of safetensors files: the one parser, for the compiler (which places every tensor) and the runtime (which reads them).
//
// A file is: header length N (uint64 little endian), N bytes of JSON, then the data. A checkpoint is one such file or the shards
// that model.safetensors.index.json names. All of it is untrusted input. Payload bytes are never read here.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace k31 {

struct TensorInfo {
  std::string name;
  std::string dtype; // as written: "BF16", "F32", "U8"
  std::vector<uint64_t> shape;
  uint64_t begin = 0; // of the data, counted from the start of the file
  uint64_t end = 0;
  uint32_t file = 0; // index into Checkpoint::files
};

struct ShardFile {
  std::string name; // relative to the folder
  uint64_t bytes = 0;
};

struct Checkpoint {
  std::string folder;
  std::vector<ShardFile> files;    // in order of name
  std::vector<TensorInfo> tensors; // in order of name, no name twice
  std::string hash;                // checkpoint_hash of the folder and its files

  const TensorInfo *find(std::string_view name) const; // null when absent
};

// Bits of one element; 0 for a dtype that safetensors does not have.
uint32_t dtype_bits(std::string_view dtype);

// Reads model.safetensors.index.json and its shards, or model.safetensors, of a folder.
Result<Checkpoint> read_checkpoint(const std::string &folder);

// Reads one file; `file` of each tensor is `index`. Tensors in order of name.
Result<std::vector<TensorInfo>> read_safetensors(const std::string &path, uint32_t index = 0);

// What a plan depends on besides the weights' values, in hex: kHeaderDigits over each file's name, a zero byte, and its header
// (length field and JSON), in the given order; then as many over the bytes of config.json (none when there is no such file).
// Two halves, so that a reader can say which one differs.
constexpr size_t kHeaderDigits = 32;
Result<std::string> checkpoint_hash(const std::string &folder, std::span<const std::string> names);

// True for names that stay inside the folder they are looked up in.
bool is_plain_name(std::string_view name);

// A tensor to write: `bytes` must be what dtype and shape say.
struct TensorData {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::span<const std::byte> bytes;
};

// Writes one file, whole or not at all; tensors in the order given.
Result<void> write_safetensors(const std::string &path, std::span<const TensorData> tensors);

} // namespace k31
