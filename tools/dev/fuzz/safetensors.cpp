#include "runtime/base/safetensors_header.h"
#include "tools/dev/fuzz/targets.h"

// As read_safetensors() takes a file apart, without the disk.
void k31::fuzz::safetensors(Bytes bytes) {
  if (bytes.size() < 8)
    return;
  uint64_t length = 0;
  for (unsigned i = 0; i < 8; ++i)
    length |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  if (length > bytes.size() - 8)
    return;
  const uint64_t begin = 8 + length;
  const auto tensors = k31::safetensors::parse_header(text(bytes.subspan(8, length)), begin, bytes.size(), 0);
  if (!tensors)
    return require_one_line(tensors.error().message);
  uint64_t covered = 0;
  for (const TensorInfo &tensor : *tensors) {
    require(begin <= tensor.begin && tensor.begin <= tensor.end && tensor.end <= bytes.size(), "tensors are inside the file");
    require(dtype_bits(tensor.dtype) != 0, "tensors have a known dtype");
    covered += tensor.end - tensor.begin;
  }
  require(covered == bytes.size() - begin, "tensors cover the data");
}

void k31::fuzz::index(Bytes bytes) {
  const auto entries = k31::safetensors::parse_index(text(bytes));
  if (!entries)
    return require_one_line(entries.error().message);
  require(!entries->empty(), "an index names a tensor");
  for (size_t i = 0; i < entries->size(); ++i) {
    require(is_plain_name((*entries)[i].file), "files stay in the folder");
    require(i == 0 || (*entries)[i - 1].tensor < (*entries)[i].tensor, "no tensor is named twice");
  }
}
