// The two JSON documents of a checkpoint, as tokens: no tree is built, so half a million tensors stay cheap.
#pragma once
#include "runtime/base/safetensors.h"

namespace k31::safetensors {

// The JSON of one file's header. `data_begin` is the offset of the data in the file, `file_bytes` its length; every range is
// checked against both, and the ranges must cover the data exactly: no overlap, no hole. Tensors in order of name.
Result<std::vector<TensorInfo>> parse_header(std::string_view json, uint64_t data_begin, uint64_t file_bytes, uint32_t file);

struct IndexEntry {
  std::string tensor;
  std::string file;
};

// The weight_map of model.safetensors.index.json, in order of tensor name.
Result<std::vector<IndexEntry>> parse_index(std::string_view json);

} // namespace k31::safetensors
