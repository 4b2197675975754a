#include "runtime/base/safetensors_header.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace k31 {

uint32_t dtype_bits(std::string_view dtype) {
  static constexpr struct {
    std::string_view name;
    uint32_t bits;
  } known[] = {{"BF16", 16},   {"U8", 8},      {"F32", 32}, {"F16", 16}, {"I32", 32},    {"I64", 64},   {"F64", 64},
               {"I8", 8},      {"I16", 16},    {"U16", 16}, {"U32", 32}, {"U64", 64},    {"BOOL", 8},   {"F8_E4M3", 8},
               {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F4", 4},   {"C64", 64}, {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto &entry : known)
    if (entry.name == dtype)
      return entry.bits;
  return 0;
}

namespace safetensors {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxName = 1024; // bytes of a tensor's name; messages show names

std::string long_name(std::string_view name) {
  return cat("a tensor's name of ", name.size(), " bytes, ", quote(name), ", at most ", kMaxName, " were expected");
}

// What both documents share: every event is refused unless the derived reader takes it.
struct Reader : nlohmann::json_sax<Json> {
  std::string problem;
  int depth = 0;

  bool refuse(std::string text) {
    problem = std::move(text);
    return false;
  }
  bool null() override { return refuse("null where a value was expected"); }
  bool boolean(bool) override { return refuse("a boolean where another value was expected"); }
  bool number_integer(number_integer_t value) override { return refuse(cat("the negative number ", value)); }
  bool number_unsigned(number_unsigned_t) override { return refuse("a number where another value was expected"); }
  bool number_float(number_float_t, const string_t &text) override {
    return refuse("the number " + quote(text) + " is not an integer");
  }
  bool string(string_t &text) override { return refuse("the string " + quote(text) + " where another value was expected"); }
  bool binary(binary_t &) override { return refuse("binary data"); }
  bool start_object(size_t) override { return refuse("an object where another value was expected"); }
  bool end_object() override { return --depth, true; }
  bool start_array(size_t) override { return refuse("a list where another value was expected"); }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string &, const Json::exception &) override {
    return refuse(cat("no valid JSON at byte ", position));
  }
};

struct HeaderReader : Reader {
  enum Field { none, dtype, shape, offsets, metadata };
  std::vector<TensorInfo> tensors;
  std::vector<uint64_t> range;
  Field field = none;
  bool in_list = false, seen[offsets + 1] = {};

  const std::string &name() const { return tensors.back().name; }

  bool start_object(size_t) override {
    if (depth == 0 || (depth == 1 && !in_list))
      return ++depth, true;
    return refuse("an object inside " + (field == metadata ? std::string("the metadata") : quote(name()))); // which has no name
  }
  bool end_object() override {
    if (depth-- == 2 && field != metadata) {
      if (!seen[dtype] || !seen[shape] || !seen[offsets])
        return refuse("tensor " + quote(name()) + " lacks dtype, shape or data_offsets");
      if (range.size() != 2)
        return refuse(cat("tensor ", quote(name()), " has ", range.size(), " data_offsets, two were expected"));
      tensors.back().begin = range[0], tensors.back().end = range[1];
    }
    return true;
  }
  bool key(string_t &text) override {
    if (depth == 1) {
      if (text == "__metadata__")
        return field = metadata, true;
      field = none;
      std::fill(std::begin(seen), std::end(seen), false);
      range.clear();
      if (text.size() > kMaxName)
        return refuse(long_name(text));
      tensors.emplace_back().name = std::move(text);
      return true;
    }
    if (field == metadata)
      return true;
    field = text == "dtype" ? dtype : text == "shape" ? shape : text == "data_offsets" ? offsets : none;
    if (field == none)
      return refuse("tensor " + quote(name()) + " has the unknown field " + quote(text));
    if (std::exchange(seen[field], true))
      return refuse("tensor " + quote(name()) + " has the field " + quote(text) + " twice");
    return true;
  }
  bool string(string_t &text) override {
    if (depth == 2 && field == metadata)
      return true;
    if (depth != 2 || field != dtype || in_list)
      return Reader::string(text);
    if (dtype_bits(text) == 0)
      return refuse("tensor " + quote(name()) + " has the unknown dtype " + quote(text));
    tensors.back().dtype = std::move(text);
    return true;
  }
  bool start_array(size_t) override {
    if (depth != 2 || in_list || (field != shape && field != offsets))
      return Reader::start_array(0);
    return in_list = true;
  }
  bool end_array() override { return in_list = false, true; }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list)
      return Reader::number_unsigned(value);
    auto &list = field == shape ? tensors.back().shape : range;
    if (list.size() >= 16)
      return refuse("tensor " + quote(name()) + " has a list of more than 16 numbers");
    list.push_back(value);
    return true;
  }
};

struct IndexReader : Reader {
  std::vector<IndexEntry> entries;
  bool in_map = false, seen = false;

  bool start_object(size_t) override { return ++depth, true; }
  bool key(string_t &text) override {
    if (depth == 1) {
      in_map = text == "weight_map";
      seen |= in_map;
    } else if (depth == 2 && in_map) {
      if (text.size() > kMaxName)
        return refuse(long_name(text));
      entries.emplace_back().tensor = std::move(text);
    }
    return true;
  }
  // Only weight_map counts; the rest of the document may hold anything.
  bool null() override { return !in_map || Reader::null(); }
  bool boolean(bool value) override { return !in_map || Reader::boolean(value); }
  bool number_integer(number_integer_t value) override { return !in_map || Reader::number_integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return !in_map || Reader::number_unsigned(value); }
  bool number_float(number_float_t value, const string_t &text) override { return !in_map || Reader::number_float(value, text); }
  bool start_array(size_t size) override { return !in_map || Reader::start_array(size); }
  bool string(string_t &text) override {
    if (!in_map)
      return true;
    if (depth != 2)
      return Reader::string(text);
    entries.back().file = std::move(text);
    return true;
  }
};

// Bytes of a tensor from dtype and shape; false when they do not fit 64 bits or end inside a byte.
bool tensor_bytes(const TensorInfo &tensor, uint64_t *bytes) {
  uint64_t bits = dtype_bits(tensor.dtype);
  for (uint64_t extent : tensor.shape)
    if (__builtin_mul_overflow(bits, extent, &bits))
      return false;
  *bytes = bits / 8;
  return bits % 8 == 0;
}

} // namespace

Result<std::vector<TensorInfo>> parse_header(std::string_view json, uint64_t data_begin, uint64_t file_bytes, uint32_t file) {
  HeaderReader reader;
  if (!Json::sax_parse(json.data(), json.data() + json.size(), &reader))
    return fail(Code::invalid_input,
                "the header holds " + reader.problem + "; the file is damaged or no safetensors file, fetch it again");
  std::vector<TensorInfo> &tensors = reader.tensors;
  const uint64_t data_bytes = file_bytes - data_begin;
  for (TensorInfo &tensor : tensors) {
    uint64_t expected = 0;
    const bool fits = tensor_bytes(tensor, &expected);
    if (tensor.end < tensor.begin || tensor.end > data_bytes)
      return fail(Code::invalid_input,
                  cat("tensor ", quote(tensor.name), " has data_offsets [", tensor.begin, ", ", tensor.end,
                      "], but the file holds ", data_bytes, " bytes of data; it is cut short or damaged, fetch it again"));
    if (!fits || expected != tensor.end - tensor.begin)
      return fail(Code::invalid_input,
                  cat("tensor ", quote(tensor.name), " has ", tensor.end - tensor.begin, " bytes, but its shape and dtype ",
                      tensor.dtype, " need ", fits ? std::to_string(expected) : "another size", "; the file is damaged"));
    tensor.begin += data_begin, tensor.end += data_begin, tensor.file = file;
  }

  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo &a, const TensorInfo &b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t covered = data_begin;
  for (const TensorInfo &tensor : tensors) {
    if (tensor.begin != covered)
      return fail(Code::invalid_input,
                  cat("tensor ", quote(tensor.name), " begins at byte ", tensor.begin, ", but the tensors before it end at ",
                      covered, ": ", tensor.begin < covered ? "they overlap" : "there is a hole", "; the file is damaged"));
    covered = tensor.end;
  }
  if (covered != file_bytes)
    return fail(Code::invalid_input,
                cat("the file has ", file_bytes, " bytes, its tensors end at ", covered, "; it is damaged, fetch it again"));

  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo &a, const TensorInfo &b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i].name == tensors[i - 1].name)
      return fail(Code::invalid_input, "tensor " + quote(tensors[i].name) + " is named twice; the file is damaged");
  return std::move(tensors);
}

Result<std::vector<IndexEntry>> parse_index(std::string_view json) {
  IndexReader reader;
  if (!Json::sax_parse(json.data(), json.data() + json.size(), &reader))
    return fail(Code::invalid_input, "the index holds " + reader.problem + "; fetch it again");
  if (!reader.seen || reader.entries.empty())
    return fail(Code::invalid_input, "the index names no tensors in weight_map; fetch it again");
  std::vector<IndexEntry> &entries = reader.entries;
  std::sort(entries.begin(), entries.end(), [](const IndexEntry &a, const IndexEntry &b) { return a.tensor < b.tensor; });
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && entries[i].tensor == entries[i - 1].tensor)
      return fail(Code::invalid_input, "the index names tensor " + quote(entries[i].tensor) + " twice");
    if (!is_plain_name(entries[i].file))
      return fail(Code::invalid_input, "the index places tensor " + quote(entries[i].tensor) + " in " + quote(entries[i].file) +
                                           ", which is no plain file name");
  }
  return std::move(entries);
}

} // namespace safetensors
} // namespace k31
