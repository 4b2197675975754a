#include "test/runtime/plan_builder.h"
#include "runtime/base/file.h"
#include "runtime/base/plan_trailer.h"
#include <gtest/gtest.h>

namespace k31::test {

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "k31-test-XXXXXX").string();
  folder = mkdtemp(pattern.data());
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

std::unique_ptr<plan::SliceT> slice(uint32_t arena, uint64_t offset, uint64_t bytes, plan::Access access) {
  auto s = std::make_unique<plan::SliceT>();
  s->arena = arena, s->offset = offset, s->bytes = bytes, s->access = access;
  return s;
}

std::unique_ptr<plan::BindingT> binding(std::string name, plan::DType type, std::vector<uint64_t> shape, uint32_t arena,
                                        uint64_t offset) {
  auto b = std::make_unique<plan::BindingT>();
  b->name = std::move(name), b->dtype = type, b->shape = std::move(shape), b->arena = arena, b->offset = offset;
  return b;
}

std::unique_ptr<plan::LayoutT> plain_layout(uint64_t rows, uint64_t row_bytes) {
  auto l = std::make_unique<plan::LayoutT>();
  l->row_bytes = l->byte_count = l->dest_row_bytes = row_bytes;
  l->row_count = l->group = l->group_stride = rows;
  return l;
}

static void add_arena(plan::PlanT &plan, const char *name, plan::ArenaKind kind, uint64_t bytes) {
  auto arena = std::make_unique<plan::ArenaT>();
  arena->name = name, arena->kind = kind, arena->bytes = bytes;
  plan.arenas.push_back(std::move(arena));
}

static void add_kernel(plan::PlanT &plan, const char *symbol) {
  auto kernel = std::make_unique<plan::KernelT>();
  kernel->name = kernel->symbol = symbol;
  kernel->images = {0};
  plan.kernels.push_back(std::move(kernel));
}

static void add_launch(plan::EntryT &entry, uint32_t kernel, uint32_t stream, uint32_t tasks,
                       std::vector<std::unique_ptr<plan::SliceT>> args) {
  plan::LaunchT launch;
  launch.kernel = kernel, launch.stream = stream, launch.grid_x = tasks, launch.args = std::move(args);
  launch.label = "launch of kernel " + std::to_string(kernel);
  entry.commands.push_back(command(std::move(launch)));
}

template <class... Slices> static std::vector<std::unique_ptr<plan::SliceT>> list(Slices... slices) {
  std::vector<std::unique_ptr<plan::SliceT>> out;
  (out.push_back(std::move(slices)), ...);
  return out;
}

static std::unique_ptr<plan::EntryT> sample_entry() {
  using namespace plan;
  auto entry = std::make_unique<EntryT>();
  entry->name = "decode_b2", entry->kind = EntryKind::decode;
  entry->rows = 4, entry->segments = 2, entry->logit_rows = 2, entry->streams = 2, entry->events = 1;
  entry->inputs.push_back(binding("tokens", DType::i32, {4}, kIo, 0));
  entry->inputs.push_back(binding("counts", DType::i32, {4}, kIo, 64));
  entry->inputs.push_back(binding("segments", DType::i32, {2, 6}, kIo, 128));
  entry->inputs.push_back(binding("row_segment", DType::i32, {4}, kIo, 192));
  entry->inputs.push_back(binding("block_table", DType::i32, {2, 2}, kIo, 256));
  entry->inputs.push_back(binding("logit_rows", DType::i32, {2}, kIo, 320));
  entry->inputs.push_back(binding("sampling", DType::u8, {2, 24}, kIo, 384));
  entry->outputs.push_back(binding("logits", DType::f32, {2, 16}, kIo, 512));
  entry->outputs.push_back(binding("sampled", DType::i32, {2}, kIo, 640));

  // Rows go through both halves of the activations: the copy and the collective move them on.
  add_launch(*entry, 0, 0, 4,
             list(slice(kIo, 64, 16), slice(kIo, 0, 16), slice(kWeights, 0, 1024), slice(kActivations, 0, 256, Access::write)));
  CopyT copy;
  copy.source = slice(kActivations, 0, 256), copy.dest = slice(kActivations, 256, 256, Access::write);
  entry->commands.push_back(command(std::move(copy)));
  entry->commands.push_back(command(RecordT()));
  WaitT wait;
  wait.stream = 1;
  entry->commands.push_back(command(std::move(wait)));
  add_launch(*entry, 1, 1, 3, list(slice(kActivations, 256, 256, Access::update), slice(kWeights, 1024, 128)));
  CollectiveT reduce;
  reduce.op = CollectiveOp::all_reduce, reduce.axis = MeshAxis::tp, reduce.dtype = DType::f32, reduce.count = 64,
  reduce.stream = 1;
  reduce.source = slice(kActivations, 256, 256), reduce.dest = slice(kActivations, 512, 256, Access::write);
  entry->commands.push_back(command(std::move(reduce)));
  add_launch(*entry, 2, 1, 2, list(slice(kIo, 320, 8), slice(kActivations, 512, 256), slice(kIo, 512, 128, Access::write)));
  return entry;
}

plan::PlanT sample_plan() {
  using namespace plan;
  PlanT p;
  p.major = kPlanMajor, p.minor = kPlanMinor;
  p.key = std::make_unique<KeyT>();
  p.key->compiler = "test", p.key->target = "cpu", p.key->checkpoint = std::string(32, '0'), p.key->digest = std::string(32, '0');
  p.mesh = std::make_unique<MeshT>();
  p.model = std::make_unique<ModelT>();
  p.model->family = "kimi-linear";
  p.model->layers = p.model->layer_end = 2, p.model->hidden = p.model->vocab = 16, p.model->max_context = 512,
  p.model->max_batch = 2;
  p.model->eos = {15}, p.model->activations = DType::f32;
  add_arena(p, "weights", ArenaKind::weights, 1024 + 128);
  add_arena(p, "io", ArenaKind::io, 1024);
  add_arena(p, "activations", ArenaKind::activations, 768);
  add_arena(p, "cache", ArenaKind::cache, 4096);
  p.state = std::make_unique<StateGroupT>();
  p.state->blocks = 2, p.state->slots = 3;
  auto latent = std::make_unique<StateMemberT>();
  latent->kind = StateKind::latent, latent->arena = kCache, latent->unit_bytes = 1024, latent->units = 2;
  auto conv = std::make_unique<StateMemberT>();
  conv->kind = StateKind::conv, conv->layer = 1, conv->arena = kCache, conv->offset = 2048, conv->unit_bytes = 512,
  conv->units = 3;
  p.state->members.push_back(std::move(latent));
  p.state->members.push_back(std::move(conv));
  auto image = std::make_unique<ImageT>();
  image->target = "x86-64-v2";
  const std::string code = read(K31_TEST_KERNELS);
  image->code.assign(code.begin(), code.end());
  p.images.push_back(std::move(image));
  for (const char *symbol : {"test_gather", "test_add", "test_scale"})
    add_kernel(p, symbol);
  p.entries.push_back(sample_entry());
  return p;
}

SampleWeights sample_weights() {
  SampleWeights w{std::vector<float>(256), std::vector<float>(16), std::vector<float>(16)};
  for (int i = 0; i < 256; ++i)
    w.table[i] = static_cast<float>(i) * 0.5f;
  for (int i = 0; i < 16; ++i)
    w.bias3[i] = static_cast<float>(1000 + i), w.bias5[i] = static_cast<float>(-7 * i);
  return w;
}

void add_weights(plan::PlanT &plan, const std::string &folder) {
  const SampleWeights w = sample_weights();
  const auto bytes = [](const std::vector<float> &v) { return std::as_bytes(std::span(v)); };
  const TensorData tensors[] = {{"layers.5.bias", "F32", {16}, bytes(w.bias5)},
                                {"table.weight", "F32", {16, 16}, bytes(w.table)},
                                {"layers.3.bias", "F32", {16}, bytes(w.bias3)}};
  ASSERT_TRUE(write_safetensors(folder + "/model.safetensors", tensors));
  const auto checkpoint = read_checkpoint(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  plan.key->checkpoint = checkpoint->hash;
  auto file = std::make_unique<plan::CheckpointFileT>();
  file->name = "model.safetensors", file->bytes = checkpoint->files[0].bytes;
  plan.files.push_back(std::move(file));

  auto table = std::make_unique<plan::WeightStackT>();
  table->pattern = "table.weight", table->dtype = "F32", table->shape = {16, 16}, table->files = {0};
  table->offsets = {checkpoint->find("table.weight")->begin}, table->arena = kWeights, table->layout = plain_layout(16, 64);
  auto bias = std::make_unique<plan::WeightStackT>();
  bias->pattern = "layers.{}.bias", bias->members = {3, 5}, bias->dtype = "F32", bias->shape = {16}, bias->files = {0, 0};
  bias->offsets = {checkpoint->find("layers.3.bias")->begin, checkpoint->find("layers.5.bias")->begin};
  bias->arena = kWeights, bias->dest = 1024, bias->stride = 64, bias->layout = plain_layout(1, 64);
  plan.weights.push_back(std::move(table));
  plan.weights.push_back(std::move(bias));
}

plan::LaunchT &launch(plan::PlanT &plan, int i) { return *plan.entries[0]->commands[i].AsLaunch(); }

std::string flatbuffer(const plan::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  plan::FinishPlanBuffer(builder, plan::Plan::Pack(builder, &plan));
  return {reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()};
}
std::string file(const plan::PlanT &plan) {
  const std::string bytes = flatbuffer(plan);
  return seal(std::as_bytes(std::span(bytes)));
}
void write(const plan::PlanT &plan, const std::string &path) { ASSERT_TRUE(write_file(path, file(plan))); }

std::string read(const std::string &path) {
  auto text = read_text(path);
  EXPECT_TRUE(text) << path;
  return text ? *text : std::string();
}

} // namespace k31::test
