// What the ranks of a mesh read: together every byte of a tensor lands where the plan says, and a host asks for little more than
// its ranks need.
#include "runtime/base/file.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan_file.h"
#include "runtime/weights/loader.h"
#include "test/runtime/plan_builder.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <random>

namespace k31::test {
namespace {

// Notes what was asked for, by place in the file.
class Recorder : public weights::Source {
public:
  explicit Recorder(std::unique_ptr<weights::Source> source) : source(std::move(source)) {}
  Result<void> read(const plan::WeightStack &stack, uint32_t member, uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex);
    const uint64_t begin = stack.offsets()->Get(member) + offset;
    asked.emplace_back(begin, begin + out.size());
    return source->read(stack, member, offset, out);
  }
  mutable std::vector<std::pair<uint64_t, uint64_t>> asked;

private:
  std::unique_ptr<weights::Source> source;
  mutable std::mutex mutex;
};

uint64_t bytes_of_union(std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  uint64_t bytes = 0, end = 0;
  for (const auto &[from, to] : ranges) {
    bytes += to > end ? to - std::max(from, end) : 0;
    end = std::max(end, to);
  }
  return bytes;
}

// Memory that goes where the host's does, with a buffer for rows that do not stay together.
class ArraySink : public weights::Sink {
public:
  explicit ArraySink(std::vector<std::byte> &arena, bool direct) : arena(arena), is_direct(direct), memory(weights::kBuffer) {}
  std::byte *direct(uint32_t, uint64_t offset) override { return is_direct ? arena.data() + offset : nullptr; }
  Result<std::span<std::byte>> buffer() override { return std::span(memory); }
  Result<void> place(const weights::Layout &layout, uint64_t row, uint64_t count, uint32_t, uint64_t member) override {
    weights::place_rows(layout, row, count, memory.data(), arena.data() + member);
    return {};
  }
  Result<void> put(uint64_t bytes, uint32_t, uint64_t offset) override {
    memcpy(arena.data() + offset, memory.data(), bytes);
    return {};
  }
  Result<void> finish() override { return {}; }

private:
  std::vector<std::byte> &arena;
  bool is_direct;
  std::vector<std::byte> memory;
};

struct Case {
  const char *name;
  plan::ShardOf of;
  plan::MeshAxis axis;
  uint32_t members;
  uint64_t rows, row_bytes;
  uint32_t tp, ep;
};

struct WeightShares : ::testing::TestWithParam<Case> {};

// Ranks' arenas against the tensors themselves, by the rule of runtime/schema/README.md.
TEST_P(WeightShares, LandWhereThePlanSays) {
  const Case &c = GetParam();
  TempFolder folder;
  std::mt19937 random(3);
  std::vector<std::vector<uint8_t>> data(c.members, std::vector<uint8_t>(c.rows * c.row_bytes));
  std::vector<TensorData> tensors;
  for (uint32_t m = 0; m < c.members; ++m) {
    for (uint8_t &b : data[m])
      b = uint8_t(random() | 1); // never zero
    tensors.push_back({"w." + std::to_string(m), "U8", {c.rows, c.row_bytes}, std::as_bytes(std::span(data[m]))});
  }
  ASSERT_TRUE(write_safetensors(folder.path("model.safetensors"), tensors));
  const auto checkpoint = read_checkpoint(folder.path());

  plan::PlanT plan = sample_plan();
  plan.entries.clear();
  plan.mesh->tp = c.tp, plan.mesh->ep = c.ep, plan.key->checkpoint = checkpoint->hash;
  auto file = std::make_unique<plan::CheckpointFileT>();
  file->name = "model.safetensors", file->bytes = checkpoint->files[0].bytes;
  plan.files.push_back(std::move(file));
  auto stack = std::make_unique<plan::WeightStackT>();
  stack->pattern = "w.{}", stack->dtype = "U8", stack->shape = {c.rows, c.row_bytes}, stack->arena = kWeights, stack->dest = 64;
  for (uint32_t m = 0; m < c.members; ++m) {
    stack->members.push_back(m), stack->files.push_back(0);
    stack->offsets.push_back(checkpoint->find("w." + std::to_string(m))->begin);
  }
  const uint32_t ranks = c.axis == plan::MeshAxis::tp ? c.tp : c.ep;
  const auto share = [&](uint64_t n) { return (n + ranks - 1) / ranks; };
  stack->layout = plain_layout(c.rows, c.row_bytes);
  plan::LayoutT &l = *stack->layout;
  if (c.of == plan::ShardOf::rows)
    l.row_count = l.group = l.group_stride = share(c.rows);
  if (c.of == plan::ShardOf::columns)
    l.byte_count = l.dest_row_bytes = share(c.row_bytes);
  stack->stride = l.row_count * l.dest_row_bytes;
  stack->shard = std::make_unique<plan::ShardT>();
  stack->shard->axis = c.axis, stack->shard->of = c.of;
  const uint64_t held = c.of == plan::ShardOf::members ? share(c.members) : c.members;
  plan.arenas[kWeights]->bytes = 64 + held * stack->stride;
  const uint64_t stride = stack->stride;
  const plan::LayoutT layout = l;
  plan.weights.push_back(std::move(stack));
  write(plan, folder.path("plan.k31"));
  const auto opened = PlanFile::open(folder.path("plan.k31"));
  ASSERT_TRUE(opened) << opened.error().message;

  for (const bool direct : {true, false}) {
    std::vector<std::pair<uint64_t, uint64_t>> asked;
    for (uint32_t rank = 0; rank < world_size(*opened->plan().mesh()); ++rank) {
      std::vector<std::byte> arena(plan.arenas[kWeights]->bytes);
      Recorder recorder(*weights::open_checkpoint(opened->plan(), folder.path()));
      uint64_t done = 0;
      const auto sink = [&]() -> Result<std::unique_ptr<weights::Sink>> { return std::make_unique<ArraySink>(arena, direct); };
      const auto loaded =
          weights::load(opened->plan(), {*opened->plan().mesh(), rank}, recorder, sink, 2, [&](uint64_t now, uint64_t total) {
            done = now;
            EXPECT_LE(now, total);
          });
      ASSERT_TRUE(loaded) << loaded.error().message;
      asked.insert(asked.end(), recorder.asked.begin(), recorder.asked.end());

      const uint32_t x = coordinate(*opened->plan().mesh(), c.axis, rank);
      std::vector<std::byte> expected(arena.size());
      uint64_t bytes = 0;
      for (uint64_t m = 0; m < held; ++m)
        for (uint64_t r = 0; r < layout.row_count; ++r)
          for (uint64_t b = 0; b < layout.byte_count; ++b) {
            const uint64_t member = m + (c.of == plan::ShardOf::members ? x * held : 0);
            const uint64_t row = r + (c.of == plan::ShardOf::rows ? x * layout.row_count : 0);
            const uint64_t byte = b + (c.of == plan::ShardOf::columns ? x * layout.byte_count : 0);
            if (member < c.members && row < c.rows && byte < c.row_bytes)
              expected[64 + m * stride + r * layout.dest_row_bytes + b] = std::byte(data[member][row * c.row_bytes + byte]),
                                                                     ++bytes;
          }
      EXPECT_TRUE(arena == expected) << "rank " << rank;
      EXPECT_EQ(done, bytes);
    }
    EXPECT_LE(double(bytes_of_union(asked)), 1.05 * double(c.members * c.rows * c.row_bytes));
    EXPECT_EQ(bytes_of_union(asked), c.members * c.rows * c.row_bytes); // all of it
  }
}

INSTANTIATE_TEST_SUITE_P(Axes, WeightShares,
                         ::testing::Values(Case{"rows", plan::ShardOf::rows, plan::MeshAxis::tp, 3, 12, 96, 4, 4},
                                           Case{"rows_uneven", plan::ShardOf::rows, plan::MeshAxis::tp, 2, 13, 64, 4, 4},
                                           Case{"columns_in_whole_rows", plan::ShardOf::columns, plan::MeshAxis::tp, 2, 20, 96, 2,
                                                2},
                                           Case{"columns_in_parts", plan::ShardOf::columns, plan::MeshAxis::tp, 2, 5, 8192, 2, 2},
                                           Case{"columns_uneven", plan::ShardOf::columns, plan::MeshAxis::tp, 1, 4, 9000, 4, 4},
                                           Case{"members", plan::ShardOf::members, plan::MeshAxis::ep, 8, 3, 32, 4, 2},
                                           Case{"members_uneven", plan::ShardOf::members, plan::MeshAxis::ep, 10, 3, 32, 4, 4},
                                           Case{"members_fewer", plan::ShardOf::members, plan::MeshAxis::ep, 5, 3, 32, 4, 4}),
                         [](const auto &info) { return std::string(info.param.name); });

// A host whose ranks need a part of the columns alone does not fetch the others.
TEST(WeightSharesOfAHost, PartsOfRowsAreReadAlone) {
  TempFolder folder;
  const uint64_t rows = 6, row_bytes = 16384;
  std::vector<std::byte> data(rows * row_bytes, std::byte(5));
  const TensorData tensor{"w", "U8", {rows, row_bytes}, data};
  ASSERT_TRUE(write_safetensors(folder.path("model.safetensors"), std::span(&tensor, 1)));
  const auto checkpoint = read_checkpoint(folder.path());
  plan::PlanT plan = sample_plan();
  plan.entries.clear();
  plan.mesh->tp = plan.mesh->ep = 4, plan.key->checkpoint = checkpoint->hash;
  auto file = std::make_unique<plan::CheckpointFileT>();
  file->name = "model.safetensors", file->bytes = checkpoint->files[0].bytes;
  plan.files.push_back(std::move(file));
  auto stack = std::make_unique<plan::WeightStackT>();
  stack->pattern = "w", stack->dtype = "U8", stack->shape = {rows, row_bytes}, stack->arena = kWeights;
  stack->files = {0}, stack->offsets = {checkpoint->find("w")->begin};
  stack->layout = plain_layout(rows, row_bytes);
  stack->layout->byte_count = stack->layout->dest_row_bytes = row_bytes / 4;
  stack->shard = std::make_unique<plan::ShardT>();
  stack->shard->axis = plan::MeshAxis::tp, stack->shard->of = plan::ShardOf::columns;
  plan.arenas[kWeights]->bytes = data.size();
  plan.weights.push_back(std::move(stack));
  write(plan, folder.path("plan.k31"));
  const auto opened = PlanFile::open(folder.path("plan.k31"));
  ASSERT_TRUE(opened) << opened.error().message;
  std::vector<std::pair<uint64_t, uint64_t>> asked;
  for (const uint32_t rank : {2, 3}) { // of the second node
    std::vector<std::byte> arena(data.size());
    Recorder recorder(*weights::open_checkpoint(opened->plan(), folder.path()));
    const auto sink = [&]() -> Result<std::unique_ptr<weights::Sink>> { return std::make_unique<ArraySink>(arena, false); };
    ASSERT_TRUE(weights::load(opened->plan(), {*opened->plan().mesh(), rank}, recorder, sink, 1, {}));
    asked.insert(asked.end(), recorder.asked.begin(), recorder.asked.end());
  }
  EXPECT_EQ(bytes_of_union(asked), rows * row_bytes / 2);
}

} // namespace
} // namespace k31::test
