// What the plan says of itself: key, mesh, model, files of the checkpoint.
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "compiler/Mesh.h"
#include "compiler/SourceHash.h"
#include "runtime/base/hash.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

namespace {

// What Bind and Run need beside the arenas. Host: up to 16 readers of weights with 4 MiB each, the stacks of the threads, the
// image as a file in memory and as it is loaded, prepared commands. GPU: the driver's context, modules and graphs, 0.6 GB; with
// other ranks NCCL's buffers for them, 0.9 to 1.4 GB between two H200 (docs/performance.md).
constexpr int64_t kHostReserve = int64_t(128) << 20;
constexpr int64_t kGpuReserve = int64_t(1) << 30, kGpuMeshReserve = int64_t(2) << 30;

FailureOr<DictionaryAttr> dictionaryOf(ModuleOp module, StringRef name) {
  if (auto dictionary = module->getAttrOfType<DictionaryAttr>(name))
    return dictionary;
  return module.emitError("the module lacks the attribute ") << name << ", which the passes before this one set";
}

FailureOr<std::string> stringOf(ModuleOp module, StringRef dictionaryName, StringRef name) {
  FailureOr<DictionaryAttr> dictionary = dictionaryOf(module, dictionaryName);
  if (failed(dictionary))
    return failure();
  if (auto text = dictionary->getAs<StringAttr>(name))
    return text.str();
  return module.emitError("attribute ") << dictionaryName << " lacks the text '" << name << "'";
}

std::string text(Attribute value) {
  if (auto string = dyn_cast<StringAttr>(value))
    return string.str();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return std::to_string(integer.getInt());
  std::string out;
  llvm::raw_string_ostream(out) << value;
  return out;
}

// Each field ends with a zero byte, so that no two different keys give the same bytes.
std::string digestOf(StringRef compiler, StringRef target, DictionaryAttr options, StringRef checkpoint, Mesh mesh) {
  std::string all;
  auto add = [&](StringRef field) { all.append(field.data(), field.size()).push_back('\0'); };
  add(compiler), add(target), add(checkpoint);
  for (NamedAttribute option : options)
    add(option.getName().getValue()), add(cast<StringAttr>(option.getValue()).getValue());
  for (auto [name, size] : mesh.axes())
    add(std::to_string(*size));
  return hex(hash128(std::as_bytes(std::span(all))));
}

LogicalResult buildFiles(ModuleOp module, OpBuilder &builder, DictionaryAttr checkpoint) {
  auto files = checkpoint.getAs<ArrayAttr>("files");
  if (!files)
    return module.emitError("attribute k31.checkpoint lacks the list 'files'");
  for (Attribute entry : files) {
    auto file = dyn_cast<DictionaryAttr>(entry);
    auto name = file ? file.getAs<StringAttr>("name") : StringAttr();
    auto bytes = file ? file.getAs<IntegerAttr>("bytes") : IntegerAttr();
    if (!name || !bytes)
      return module.emitError("attribute k31.checkpoint has the file ") << entry << ", expected {name = \"...\", bytes = N}";
    planir::FileOp::create(builder, module.getLoc(), name.getValue(), bytes.getInt());
  }
  return success();
}

LogicalResult buildModel(ModuleOp module, OpBuilder &builder) {
  FailureOr<DictionaryAttr> model = dictionaryOf(module, "k31.model"), options = dictionaryOf(module, "k31.options");
  FailureOr<std::string> family = stringOf(module, "k31.model", "family"),
                         activations = stringOf(module, "k31.options", "activations"),
                         target = stringOf(module, "k31.options", "target");
  if (failed(model) || failed(options) || failed(family) || failed(activations) || failed(target))
    return failure();
  SmallVector<int64_t, 5> numbers;
  for (auto [dictionary, name] :
       {std::pair("k31.model", "layers"), std::pair("k31.model", "hidden"), std::pair("k31.model", "vocab"),
        std::pair("k31.options", "max_context"), std::pair("k31.options", "max_batch")}) {
    FailureOr<int64_t> value = integerOf(module, dictionary, name);
    if (failed(value))
      return failure();
    numbers.push_back(*value);
  }
  auto optional = [&](StringRef name, int64_t otherwise) {
    auto value = options->getAs<IntegerAttr>(name);
    return value ? value.getInt() : otherwise;
  };
  SmallVector<int32_t> eos;
  if (auto ids = model->getAs<DenseI64ArrayAttr>("eos"))
    eos.assign(ids.asArrayRef().begin(), ids.asArrayRef().end());
  else
    return module.emitError("attribute k31.model lacks 'eos', expected array<i64: ...>");
  FailureOr<Mesh> mesh = readMesh(module);
  if (failed(mesh))
    return failure();
  int64_t reserve = *target == "cpu" ? kHostReserve : mesh->ranks() > 1 ? kGpuMeshReserve : kGpuReserve;
  planir::ModelOp::create(builder, module.getLoc(), *family, numbers[0], optional("layer_begin", 0),
                          optional("layer_end", numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4], eos,
                          *activations == "fp32" ? "f32" : *activations, reserve);
  return success();
}

} // namespace

FailureOr<int64_t> to_plan::integerOf(ModuleOp module, StringRef dictionaryName, StringRef name) {
  FailureOr<DictionaryAttr> dictionary = dictionaryOf(module, dictionaryName);
  if (failed(dictionary))
    return failure();
  if (auto integer = dictionary->getAs<IntegerAttr>(name))
    return integer.getInt();
  return module.emitError("attribute ") << dictionaryName << " lacks the number '" << name << "'";
}

LogicalResult to_plan::buildFacts(ModuleOp module, OpBuilder &builder) {
  FailureOr<DictionaryAttr> options = dictionaryOf(module, "k31.options"), checkpoint = dictionaryOf(module, "k31.checkpoint");
  FailureOr<std::string> target = stringOf(module, "k31.options", "target"), hash = stringOf(module, "k31.checkpoint", "hash");
  FailureOr<Mesh> mesh = readMesh(module);
  if (failed(options) || failed(checkpoint) || failed(target) || failed(hash) || failed(mesh))
    return failure();

  // The target has a field of its own; the rest of the options are text.
  SmallVector<NamedAttribute> texts;
  for (NamedAttribute option : *options)
    if (option.getName() != "target")
      texts.emplace_back(option.getName(), builder.getStringAttr(text(option.getValue())));
  DictionaryAttr named = builder.getDictionaryAttr(texts);

  constexpr StringRef compiler = "k31c " K31_VERSION "+" K31_SOURCE_HASH;
  planir::KeyOp::create(builder, module.getLoc(), compiler, *target, named, *hash,
                        digestOf(compiler, *target, named, *hash, *mesh));
  planir::MeshOp::create(builder, module.getLoc(), mesh->tp, mesh->dp, mesh->ep, mesh->pp, mesh->node);
  if (failed(buildModel(module, builder)))
    return failure();
  return buildFiles(module, builder, *checkpoint);
}
