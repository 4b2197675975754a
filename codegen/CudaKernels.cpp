#include "codegen/CudaKernels.h"
#include "codegen/CudaCosts.h"
#include "codegen/CudaKernelList.h" // generated: the tile headers, K31_CUDA_KERNELS and the embedded files
#include "codegen/kernels/common/tensor_map.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <map>

using namespace llvm;
using namespace mlir;

namespace k31 {

std::string cudaLiteral(float value) {
  uint32_t bits = bit_cast<uint32_t>(value);
  if (!std::isfinite(value))
    return formatv("__uint_as_float({0}u)", format_hex(bits, 10));
  char text[48];
  snprintf(text, sizeof text, "%af", static_cast<double>(value));
  return value < 0 || std::signbit(value) ? "(" + std::string(text) + ")" : text;
}

namespace {

std::string literal(int32_t v) { return std::to_string(v); }
std::string literal(float v) { return cudaLiteral(v); }
std::string literal(kernels::DType v) { return ("DType::" + kDTypeNames[static_cast<int32_t>(v)]).str(); }
template <size_t N> std::string literal(const int32_t (&v)[N]) {
  ArrayRef<int32_t> values(v);
  while (!values.empty() && values.back() == 0)
    values = values.drop_back();
  return "{" + join(map_range(values, [](int32_t x) { return std::to_string(x); }), ", ") + "}";
}

template <config_detail::IsConfig C> std::string initialiser(const C &value);
template <config_detail::IsConfig C> std::string literal(const C &value) { return initialiser(value); }

// "{.rows = 8, .x_type = DType::bf16}": fields that differ from their default, in the order of the visitor, which is the order
// of the declaration.
template <config_detail::IsConfig C> std::string initialiser(const C &value) {
  C defaults;
  std::string text;
  config_detail::eachField<C>([&](StringRef name, auto member) {
    if (std::memcmp(&(value.*member), &(defaults.*member), sizeof(value.*member)) != 0)
      text += (text.empty() ? "." : ", .") + name.str() + " = " + literal(value.*member);
  });
  return "{" + text + "}";
}

template <class Config, class Tile> Tile tileFor(const Config &config) {
  if constexpr (requires { choose(config); })
    return choose(config);
  else
    return Tile();
}

// Kernels that name their tensor maps take them behind the pointers.
template <class Config, class Tile>
constexpr bool kHasMaps = requires(const Config &config, const Tile &tile) { tensor_maps(config, tile); };

ArrayAttr mapsOf(MLIRContext *context, const kernels::TensorMaps &maps) {
  Builder b(context);
  SmallVector<Attribute> list;
  for (const kernels::TensorMap &map : ArrayRef(maps.map, maps.count)) {
    auto field = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); };
    list.push_back(b.getDictionaryAttr({field("arg", map.argument), field("columns", map.columns), field("rows", map.rows),
                                        field("row_bytes", map.row_bytes), field("box_columns", map.box_columns),
                                        field("box_rows", map.box_rows),
                                        b.getNamedAttr("dtype", b.getStringAttr(kDTypeNames[static_cast<int32_t>(map.type)]))}));
  }
  return list.empty() ? ArrayAttr() : b.getArrayAttr(list);
}

template <class Config, class Tile, class Args> FailureOr<CudaLaunch> launchOf(DictionaryAttr fields, EmitError emitError) {
  Config config;
  if (failed(configFromDictionary(fields, config, emitError)))
    return failure();
  const Tile tile = tileFor<Config, Tile>(config);
  const auto blocks = grid(config, tile);
  CudaLaunch launch;
  launch.tile = configToDictionary(fields.getContext(), tile);
  launch.grid = {static_cast<int32_t>(blocks.x), static_cast<int32_t>(blocks.y), static_cast<int32_t>(blocks.z)};
  launch.block = static_cast<int32_t>(tile.threads());
  if constexpr (requires { smem(config, tile); })
    launch.smem = static_cast<int32_t>(smem(config, tile));
  else if constexpr (requires { tile.smem(config); })
    launch.smem = static_cast<int32_t>(tile.smem(config));
  else
    launch.smem = static_cast<int32_t>(tile.smem());
  if constexpr (kHasMaps<Config, Tile>) {
    launch.maps = mapsOf(fields.getContext(), tensor_maps(config, tile));
    launch.mapsAt = offsetof(kernels::Mapped<Args>, maps);
  }
  if constexpr (requires { workspace(config, tile); })
    launch.workspace = static_cast<uint64_t>(workspace(config, tile));
  compareTiles(config, tile, launch);
  return launch;
}

// The two constants that specialise the kernel.
template <class Config, class Tile>
FailureOr<std::string> constantsOf(DictionaryAttr configFields, DictionaryAttr tileFields, EmitError emitError) {
  Config config;
  Tile tile;
  if (failed(configFromDictionary(configFields, config, emitError)) || failed(configFromDictionary(tileFields, tile, emitError)))
    return failure();
  if constexpr (requires { config.rows; })
    config.rows = 0; // the capacity decides Tile and grid; device code does not read it, so that buckets share an image
  return "constexpr Config config = " + initialiser(config) + ";\nconstexpr Tile tile = " + initialiser(tile) + ";\n";
}

struct Entry {
  FailureOr<CudaLaunch> (*launch)(DictionaryAttr, EmitError);
  FailureOr<std::string> (*constants)(DictionaryAttr, DictionaryAttr, EmitError);
  bool maps;
};

#define K31_CUDA_KERNEL(name, space)                                                                                             \
  {name,                                                                                                                         \
   {launchOf<space::Config, space::Tile, space::Args>, constantsOf<space::Config, space::Tile>,                                  \
    kHasMaps<space::Config, space::Tile>}},
const std::map<StringRef, Entry> &table() {
  static const std::map<StringRef, Entry> entries = {K31_CUDA_KERNELS};
  return entries;
}

const Entry *find(StringRef kernel, EmitError emitError) {
  auto at = table().find(kernel);
  if (at != table().end())
    return &at->second;
  std::string names = join(map_range(table(), [](const auto &entry) { return entry.first; }), ", ");
  emitError() << "there is no CUDA kernel '" << kernel << "'; kernels are " << (names.empty() ? "none" : names);
  return nullptr;
}

const std::map<StringRef, StringRef> &files() {
  static const std::map<StringRef, StringRef> all = [] {
    std::map<StringRef, StringRef> map;
    for (const CudaFile &file : kCudaFiles)
      map.emplace(file.name, StringRef(file.begin, file.end - file.begin));
    return map;
  }();
  return all;
}

// "nn.row" -> "codegen/kernels/nn/row.cuh"
std::string pathOf(StringRef kernel) {
  auto [dialect, name] = kernel.split('.');
  return ("codegen/kernels/" + dialect + "/" + name + ".cuh").str();
}

void addHeader(StringRef name, std::map<StringRef, StringRef> &found) {
  auto file = files().find(name);
  if (file == files().end() || !found.emplace(file->first, file->second).second)
    return;
  SmallVector<StringRef> lines;
  file->second.split(lines, '\n');
  for (StringRef line : lines)
    if (line.consume_front("#include \""))
      addHeader(line.take_until([](char c) { return c == '"'; }), found);
}

} // namespace

FailureOr<CudaLaunch> cudaLaunch(StringRef kernel, DictionaryAttr config, EmitError emitError) {
  const Entry *entry = find(kernel, emitError);
  return entry ? entry->launch(config, emitError) : FailureOr<CudaLaunch>(failure());
}

FailureOr<std::string> cudaSource(StringRef kernel, DictionaryAttr config, DictionaryAttr tile, StringRef region,
                                  StringRef symbol, EmitError emitError) {
  const Entry *entry = find(kernel, emitError);
  FailureOr<std::string> constants = entry ? entry->constants(config, tile, emitError) : FailureOr<std::string>(failure());
  if (failed(constants))
    return failure();
  std::string space = kernel.split('.').second.str();
  std::string text = "#include \"" + pathOf(kernel) + "\"\nnamespace k31::kernels::" + space + " {\n";
  text += region.empty() ? "struct Region {};\n" : region.str();
  text += *constants;
  // A kernel starts while the launches before it end, and waits for them before it reads, or later by itself.
  auto ahead = tile.getAs<IntegerAttr>("ahead");
  std::string begin = "  allow_next_launch();\n";
  if (!ahead || ahead.getInt() == 0)
    begin += "  wait_for_launches();\n";
  text += "extern \"C\" __global__ void __launch_bounds__(tile.threads(), blocks_at_once(tile)) ";
  if (auto split = tile.getAs<IntegerAttr>("split"); split && split.getInt() > 1)
    text += "__cluster_dims__(tile.split, 1, 1) ";
  if (entry->maps)
    text += symbol.str() + "(const __grid_constant__ Mapped<Args> args) {\n" + begin +
            "  run<config, tile, Region>(args.args, args.maps);\n}\n}\n";
  else
    text += symbol.str() + "(const __grid_constant__ Args args) {\n" + begin + "  run<config, tile, Region>(args);\n}\n}\n";
  return text;
}

std::vector<NvrtcHeader> cudaHeaders(StringRef kernel) {
  std::map<StringRef, StringRef> found;
  addHeader(pathOf(kernel), found);
  return {found.begin(), found.end()};
}

} // namespace k31
