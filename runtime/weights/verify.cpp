#include "runtime/weights/verify.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/base/safetensors.h"
#include "runtime/weights/placement.h"
#include <algorithm>
#include <filesystem>

namespace k31::weights {
namespace {

constexpr const char *kRemedy = "; name the checkpoint that the plan was made from, or compile the plan again";

std::string text(std::string_view dtype, const auto &shape) {
  std::string out = std::string(dtype) + " [";
  bool first = true;
  for (uint64_t extent : shape)
    out += (std::exchange(first, false) ? "" : ", ") + std::to_string(extent);
  return out + "]";
}

// What is wrong with the member, or nothing.
std::string difference(const plan::Plan &plan, const plan::WeightStack &stack, uint32_t i, const TensorInfo *found) {
  const std::string name = "tensor " + quote(member_name(stack, i));
  if (!found)
    return name + " is not in the checkpoint";
  const std::string is = text(found->dtype, found->shape), expected = text(stack.dtype()->string_view(), *stack.shape());
  if (is != expected)
    return cat(name, " is ", is, ", the plan expects ", expected);
  const uint32_t file = stack.files()->Get(i);
  const uint64_t begin = stack.offsets()->Get(i);
  if (found->file != file || found->begin != begin)
    return cat(name, " is at byte ", found->begin, " of ", quote(plan.files()->Get(found->file)->name()->str()),
               ", the plan expects byte ", begin, " of ", quote(plan.files()->Get(file)->name()->str()));
  return {};
}

// The first tensor that differs, for the message; nothing when only names or metadata that the plan does not use differ.
std::string first_difference(const plan::Plan &plan, const std::string &folder) {
  Checkpoint checkpoint;
  for (uint32_t i = 0; i < plan.files()->size(); ++i) {
    auto tensors = read_safetensors((std::filesystem::path(folder) / plan.files()->Get(i)->name()->str()).string(), i);
    if (!tensors)
      return tensors.error().message;
    checkpoint.tensors.insert(checkpoint.tensors.end(), tensors->begin(), tensors->end());
  }
  std::sort(checkpoint.tensors.begin(), checkpoint.tensors.end(),
            [](const TensorInfo &a, const TensorInfo &b) { return a.name < b.name; });
  for (const plan::WeightStack *stack : *plan.weights())
    for (uint32_t i = 0; i < stack->files()->size(); ++i)
      if (std::string text = difference(plan, *stack, i, checkpoint.find(member_name(*stack, i))); !text.empty())
        return text;
  return "every tensor that the plan uses is in place, other tensors or metadata differ";
}

// Plans of format 1.0 know the headers alone.
Result<void> compare(const plan::Plan &plan, const std::string &folder, std::string_view found) {
  const std::string_view expected = plan.key()->checkpoint()->string_view();
  if (found.substr(0, kHeaderDigits) != expected.substr(0, kHeaderDigits))
    return fail(Code::invalid_input,
                cat("the headers of the checkpoint in ", quote(folder, 4096), " hash to ", found.substr(0, kHeaderDigits),
                    ", the plan expects ", quote(expected.substr(0, kHeaderDigits)), ": ", first_difference(plan, folder),
                    kRemedy));
  if (expected.size() != kHeaderDigits && found != expected)
    return fail(Code::invalid_input, cat(quote((std::filesystem::path(folder) / "config.json").string(), 4096), " hashes to ",
                                         found.substr(kHeaderDigits), ", the plan expects ",
                                         quote(expected.substr(kHeaderDigits)), ": the file differs or is missing", kRemedy));
  return {};
}

} // namespace

Result<void> verify(const plan::Plan &plan, const std::string &folder) {
  if (plan.files()->size() == 0)
    return {};
  if (folder.empty())
    return fail(Code::invalid_input, "no checkpoint is given; name the folder of the checkpoint that the plan was made from");
  std::vector<std::string> names;
  for (const plan::CheckpointFile *file : *plan.files()) {
    names.push_back(file->name()->str());
    const std::string path = (std::filesystem::path(folder) / names.back()).string();
    const Result<File> opened = File::open(path);
    if (!opened && opened.error().code == Code::not_found)
      return fail(Code::not_found, cat("cannot open ", quote(path, 4096), ": No such file or directory", kRemedy));
    if (!opened)
      return tl::unexpected(opened.error());
    if (opened->size() != file->bytes())
      return fail(Code::invalid_input, cat(quote(path, 4096), " has ", opened->size(), " bytes, the plan expects ", file->bytes(),
                                           ": the file is cut short or of another checkpoint", kRemedy));
  }
  K31_ASSIGN(const std::string hash, checkpoint_hash(folder, names));
  return compare(plan, folder, hash);
}

} // namespace k31::weights
