#include "runtime/base/safetensors.h"
#include "runtime/base/cat.h"
#include "runtime/base/cpu.h"
#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/safetensors_header.h"
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <new>
#include <system_error>
#include <thread>

namespace k31 {
namespace {

// Longest header that the format allows.
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr uint64_t kMaxConfig = 16u << 20; // far above every real one
constexpr const char *kIndexName = "model.safetensors.index.json", *kConfigName = "config.json";

struct Header {
  std::string bytes; // length field and JSON
  uint64_t file_bytes = 0;
  std::string_view json() const { return std::string_view(bytes).substr(8); }
};

Result<Header> read_header(const std::string &path) {
  K31_ASSIGN(const File file, File::open(path));
  if (file.size() < 8)
    return fail(Code::invalid_input,
                cat("the file has ", file.size(), " bytes, a safetensors file has at least 8; fetch it again"));
  std::byte field[8];
  K31_TRY(file.read_at(0, field));
  uint64_t length = 0;
  for (unsigned i = 0; i < 8; ++i)
    length |= static_cast<uint64_t>(field[i]) << (8 * i);
  if (length > kMaxHeader || length > file.size() - 8)
    return fail(Code::invalid_input, cat("the header's length is given as ", length, " bytes, but the file has ", file.size(),
                                         " and a header at most ", kMaxHeader, "; it is cut short or no safetensors file"));
  Header header;
  header.file_bytes = file.size();
  header.bytes.resize(8 + length);
  K31_TRY(file.read_at(0, std::as_writable_bytes(std::span(header.bytes))));
  return header;
}

std::string join(const std::string &folder, const std::string &name) { return (std::filesystem::path(folder) / name).string(); }

void add_to_hash(Hasher &hasher, const std::string &name, const Header &header) {
  hasher.update(name);
  hasher.update(std::string_view("\0", 1));
  hasher.update(header.bytes);
}

Result<std::string> config_hash(const std::string &folder) {
  const std::string path = join(folder, kConfigName);
  std::error_code ignored;
  std::string text;
  if (std::filesystem::exists(path, ignored)) {
    K31_ASSIGN(text, read_text(path, kMaxConfig));
  }
  return hex(hash128(std::as_bytes(std::span(text))));
}

struct ParsedFile {
  Header header;
  std::vector<TensorInfo> tensors;
};

// Runs on threads of its own too, so nothing is thrown out of it.
Result<ParsedFile> parse_file(const std::string &path, uint32_t index) try {
  K31_ASSIGN(Header header, read_header(path));
  K31_ASSIGN(std::vector<TensorInfo> tensors,
             safetensors::parse_header(header.json(), header.bytes.size(), header.file_bytes, index));
  return ParsedFile{std::move(header), std::move(tensors)};
} catch (const std::bad_alloc &) {
  return fail(Code::out_of_memory, "no memory is left to read the header");
}

// Headers of all files, several at a time; the error of the first file that has one.
Result<std::vector<ParsedFile>> parse_files(const std::string &folder, const std::vector<std::string> &names) {
  std::vector<Result<ParsedFile>> results(names.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < names.size();)
      results[i] = parse_file(join(folder, names[i]), static_cast<uint32_t>(i));
  };
  std::vector<std::jthread> helpers;
  try {
    for (size_t i = 1; i < std::min<size_t>({names.size(), static_cast<size_t>(cpu_threads()), 16}); ++i)
      helpers.emplace_back(work);
  } catch (const std::system_error &) { // no more threads: those that there are do the work
  }
  work();
  helpers.clear();
  std::vector<ParsedFile> files;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!results[i])
      return context(join(folder, names[i]), std::move(results[i].error()));
    files.push_back(std::move(*results[i]));
  }
  return files;
}

// Every tensor of the index must be in the file that it names. Both lists are in order of name.
Result<void> check_index(const std::vector<safetensors::IndexEntry> &index, const Checkpoint &checkpoint) {
  auto tensor = checkpoint.tensors.begin();
  for (const safetensors::IndexEntry &entry : index) {
    while (tensor != checkpoint.tensors.end() && tensor->name < entry.tensor)
      ++tensor;
    if (tensor == checkpoint.tensors.end() || tensor->name != entry.tensor)
      return fail(Code::invalid_input, "the index places tensor " + quote(entry.tensor) + " in " + quote(entry.file) +
                                           ", but no file holds it; fetch the checkpoint again");
    if (checkpoint.files[tensor->file].name != entry.file)
      return fail(Code::invalid_input, "the index places tensor " + quote(entry.tensor) + " in " + quote(entry.file) +
                                           ", but it is in " + quote(checkpoint.files[tensor->file].name) +
                                           "; fetch the checkpoint again");
  }
  return {};
}

} // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() < 256 && name[0] != '.' && name.find('/') == name.npos && name.find('\0') == name.npos;
}

const TensorInfo *Checkpoint::find(std::string_view name) const {
  auto at =
      std::lower_bound(tensors.begin(), tensors.end(), name, [](const TensorInfo &t, std::string_view n) { return t.name < n; });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

Result<std::vector<TensorInfo>> read_safetensors(const std::string &path, uint32_t index) {
  auto file = parse_file(path, index);
  if (!file)
    return context(path, std::move(file.error()));
  return std::move(file->tensors);
}

Result<Checkpoint> read_checkpoint(const std::string &folder) {
  std::vector<safetensors::IndexEntry> index;
  std::vector<std::string> names;
  std::error_code ignored;
  const std::string index_path = join(folder, kIndexName);
  if (std::filesystem::exists(index_path, ignored)) {
    K31_ASSIGN(const std::string text, read_text(index_path));
    auto parsed = safetensors::parse_index(text);
    if (!parsed)
      return context(index_path, std::move(parsed.error()));
    index = std::move(*parsed);
    for (const safetensors::IndexEntry &entry : index)
      if (names.empty() || names.back() != entry.file)
        names.push_back(entry.file);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string &name : names)
      if (!std::filesystem::exists(join(folder, name), ignored))
        return fail(Code::not_found, index_path + " names the file " + quote(name) + ", which is not there; fetch it");
  } else if (std::filesystem::exists(join(folder, "model.safetensors"), ignored)) {
    names = {"model.safetensors"};
  } else {
    return fail(Code::not_found,
                quote(folder, 4096) + " holds neither " + kIndexName + " nor model.safetensors; name a checkpoint's folder");
  }

  K31_ASSIGN(std::vector<ParsedFile> files, parse_files(folder, names));
  Checkpoint checkpoint;
  checkpoint.folder = folder;
  Hasher hasher;
  size_t count = 0;
  for (const ParsedFile &file : files)
    count += file.tensors.size();
  checkpoint.tensors.reserve(count);
  for (size_t i = 0; i < files.size(); ++i) {
    add_to_hash(hasher, names[i], files[i].header);
    checkpoint.files.push_back({names[i], files[i].header.file_bytes});
    std::move(files[i].tensors.begin(), files[i].tensors.end(), std::back_inserter(checkpoint.tensors));
  }
  K31_ASSIGN(const std::string config, config_hash(folder));
  checkpoint.hash = hex(hasher.digest()) + config;
  std::sort(checkpoint.tensors.begin(), checkpoint.tensors.end(),
            [](const TensorInfo &a, const TensorInfo &b) { return a.name < b.name; });
  for (size_t i = 1; i < checkpoint.tensors.size(); ++i)
    if (const TensorInfo &a = checkpoint.tensors[i - 1], &b = checkpoint.tensors[i]; a.name == b.name)
      return fail(Code::invalid_input, "tensor " + quote(a.name) + " is in both " + quote(names[a.file]) + " and " +
                                           quote(names[b.file]) + "; the folder mixes checkpoints, fetch it again");
  if (auto checked = check_index(index, checkpoint); !checked)
    return context(index_path, std::move(checked.error()));
  return checkpoint;
}

Result<std::string> checkpoint_hash(const std::string &folder, std::span<const std::string> names) {
  Hasher hasher;
  for (const std::string &name : names) {
    auto header = read_header(join(folder, name));
    if (!header)
      return context(join(folder, name), std::move(header.error()));
    add_to_hash(hasher, name, *header);
  }
  K31_ASSIGN(const std::string config, config_hash(folder));
  return hex(hasher.digest()) + config;
}

} // namespace k31
