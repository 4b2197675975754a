#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/base/safetensors.h"
#include <nlohmann/json.hpp>

namespace k31 {

Result<void> write_safetensors(const std::string &path, std::span<const TensorData> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  uint64_t at = 0;
  for (const TensorData &tensor : tensors) {
    uint64_t bits = dtype_bits(tensor.dtype);
    for (uint64_t extent : tensor.shape)
      if (__builtin_mul_overflow(bits, extent, &bits))
        return fail(Code::invalid_input, "the shape of tensor " + quote(tensor.name) + " does not fit 64 bits");
    if (dtype_bits(tensor.dtype) == 0 || bits != tensor.bytes.size() * 8)
      return fail(Code::invalid_input, cat("tensor ", quote(tensor.name), " has ", tensor.bytes.size(),
                                           " bytes, but its shape and dtype ", tensor.dtype, " need ", bits / 8));
    if (header.contains(tensor.name))
      return fail(Code::invalid_input, "tensor " + quote(tensor.name) + " is given twice");
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string json = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  json.append((8 - json.size() % 8) % 8, ' '); // the data begins at a multiple of eight

  std::byte length[8];
  for (unsigned i = 0; i < 8; ++i)
    length[i] = static_cast<std::byte>(static_cast<uint64_t>(json.size()) >> (8 * i));
  std::vector<std::span<const std::byte>> parts = {length, std::as_bytes(std::span(json))};
  for (const TensorData &tensor : tensors)
    parts.push_back(tensor.bytes);
  return write_file(path, parts);
}

} // namespace k31
