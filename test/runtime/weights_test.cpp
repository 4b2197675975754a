// Placement of weights against a naive copy, and the refusal of checkpoints that do not belong to the plan.
#include "runtime/base/file.h"
#include "runtime/plan/plan_file.h"
#include "runtime/session.h"
#include "runtime/weights/loader.h"
#include "runtime/weights/placement.h"
#include "test/runtime/plan_builder.h"
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace k31::test {
namespace {

// A plan without entries whose one stack has `members` U8 tensors of [rows, row_bytes].
struct Stack {
  TempFolder folder;
  plan::PlanT plan = sample_plan();
  std::vector<std::vector<uint8_t>> data;
  plan::WeightStackT *stack = nullptr;

  Stack(uint32_t members, uint64_t rows, uint64_t row_bytes, uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::vector<TensorData> tensors;
    data.resize(members);
    for (uint32_t m = 0; m < members; ++m) {
      data[m].resize(rows * row_bytes);
      for (uint8_t &b : data[m])
        b = static_cast<uint8_t>(random());
      tensors.push_back({"w." + std::to_string(m), "U8", {rows, row_bytes}, std::as_bytes(std::span(data[m]))});
    }
    EXPECT_TRUE(write_safetensors(folder.path("model.safetensors"), tensors));
    auto checkpoint = read_checkpoint(folder.path());
    plan.entries.clear();
    plan.key->checkpoint = checkpoint->hash;
    auto file = std::make_unique<plan::CheckpointFileT>();
    file->name = "model.safetensors", file->bytes = checkpoint->files[0].bytes;
    plan.files.push_back(std::move(file));
    auto s = std::make_unique<plan::WeightStackT>();
    s->pattern = "w.{}", s->dtype = "U8", s->shape = {rows, row_bytes}, s->arena = kWeights;
    for (uint32_t m = 0; m < members; ++m) {
      s->members.push_back(m), s->files.push_back(0);
      s->offsets.push_back(checkpoint->find("w." + std::to_string(m))->begin);
    }
    s->layout = plain_layout(rows, row_bytes);
    stack = s.get();
    plan.weights.push_back(std::move(s));
  }

  // The arena as the definition of Layout says, byte by byte.
  std::vector<uint8_t> naive() const {
    std::vector<uint8_t> arena(plan.arenas[kWeights]->bytes, 0);
    const plan::LayoutT &l = *stack->layout;
    for (size_t m = 0; m < data.size(); ++m)
      for (uint64_t r = 0; r < l.row_count; ++r) {
        const uint64_t row = (r / l.group) * l.group_stride + l.group_begin + r % l.group;
        const uint64_t to = stack->dest + m * stack->stride + row * l.dest_row_bytes,
                       from = (l.row_begin + r) * l.row_bytes + l.byte_begin;
        for (uint64_t b = 0; b < l.byte_count; ++b)
          arena.at(to + b) = data[m].at(from + b);
      }
    return arena;
  }

  void check(int threads = 2) {
    write(plan, folder.path("plan.k31"));
    auto session = Session::load(folder.path("plan.k31"));
    ASSERT_TRUE(session) << session.error().message;
    BindOptions options;
    options.weights = folder.path(), options.threads = threads;
    auto bound = (*session)->bind(options);
    ASSERT_TRUE(bound) << bound.error().message;
    const std::span<const std::byte> arena = (*session)->arena(kWeights);
    const std::vector<uint8_t> expected = naive();
    ASSERT_EQ(arena.size(), expected.size());
    for (size_t i = 0; memcmp(arena.data(), expected.data(), expected.size()) != 0 && i < expected.size(); ++i)
      ASSERT_EQ(static_cast<uint8_t>(arena[i]), expected[i]) << "byte " << i;
  }
};

TEST(Weights, Concatenation) {
  Stack s(3, 10, 24);
  s.plan.arenas[kWeights]->bytes = 1000, s.stack->dest = 40, s.stack->stride = 300;
  s.check();
}

TEST(Weights, InterleaveBySixteen) {
  for (uint64_t begin : {0, 16}) { // gate and up of one matrix
    Stack s(2, 64, 32);
    s.plan.arenas[kWeights]->bytes = 2 * 128 * 32, s.stack->stride = 128 * 32;
    s.stack->layout->group = 16, s.stack->layout->group_stride = 32, s.stack->layout->group_begin = begin;
    s.check();
  }
}

TEST(Weights, InterleaveWithShortLastGroup) {
  Stack s(1, 41, 8);
  s.plan.arenas[kWeights]->bytes = ((2 * 32) + 16 + 9) * 8;
  s.stack->layout->group = 16, s.stack->layout->group_stride = 32, s.stack->layout->group_begin = 16;
  s.check();
}

TEST(Weights, ByteColumns) {
  Stack s(2, 12, 64);
  s.plan.arenas[kWeights]->bytes = 4096, s.stack->stride = 1024;
  plan::LayoutT &l = *s.stack->layout;
  l.byte_begin = 16, l.byte_count = 32, l.dest_row_bytes = 40;
  s.check();
}

TEST(Weights, RowRange) {
  Stack s(2, 12, 16);
  s.plan.arenas[kWeights]->bytes = 512, s.stack->stride = 128;
  s.stack->layout->row_begin = 3, s.stack->layout->row_count = 7, s.stack->layout->group = 7;
  s.check();
}

// Every path of the reader: direct runs, buffers that end inside a member, rows too wide for a buffer, several items a member.
TEST(Weights, LargeMembers) {
  struct Case {
    uint64_t rows, row_bytes, byte_count, group, stride;
  };
  for (const Case &c : {Case{40000, 1024, 1024, 16, 32}, Case{20000, 512, 200, 20000, 20000}, Case{3, 5 << 20, 3 << 20, 3, 3},
                        Case{12, 1 << 20, 1 << 20, 4, 4}, Case{100, 100000, 100000, 4, 8}}) {
    Stack s(1, c.rows, c.row_bytes);
    plan::LayoutT &l = *s.stack->layout;
    l.byte_count = c.byte_count, l.byte_begin = (c.row_bytes - c.byte_count) / 2, l.dest_row_bytes = c.byte_count;
    l.group = c.group, l.group_stride = c.stride;
    s.plan.arenas[kWeights]->bytes = (c.rows + c.group) / c.group * c.stride * c.byte_count;
    s.check(3);
  }
}

TEST(Weights, RandomLayouts) {
  std::mt19937 random(7);
  const auto pick = [&](uint64_t low, uint64_t high) { return low + random() % (high - low + 1); };
  for (uint32_t i = 0; i < 150; ++i) {
    Stack s(static_cast<uint32_t>(pick(1, 4)), pick(1, 50), pick(1, 40), i);
    plan::LayoutT &l = *s.stack->layout;
    const uint64_t rows = s.stack->shape[0];
    l.row_begin = pick(0, rows - 1), l.row_count = pick(1, rows - l.row_begin);
    l.byte_begin = pick(0, l.row_bytes - 1),
    l.byte_count = random() % 2 ? l.row_bytes - l.byte_begin : pick(1, l.row_bytes - l.byte_begin);
    if (random() % 2)
      l.byte_begin = 0, l.byte_count = l.row_bytes;
    l.dest_row_bytes = l.byte_count + (random() % 2 ? pick(0, 9) : 0);
    l.group = pick(1, l.row_count), l.group_stride = l.group + (random() % 2 ? pick(0, 5) : 0), l.group_begin = pick(0, 5);
    s.stack->dest = pick(0, 64), s.stack->stride = 200 * 50 * 3 * 8;
    s.plan.arenas[kWeights]->bytes = s.stack->dest + 4 * s.stack->stride;
    s.check(static_cast<int>(pick(1, 3)));
    if (HasFatalFailure())
      FAIL() << "layout " << i;
  }
}

struct WeightsRefusal : ::testing::Test {
  TempFolder folder;
  plan::PlanT plan = sample_plan();
  void SetUp() override { add_weights(plan, folder.path()); }
  std::string refusal(const std::string &weights) {
    write(plan, folder.path("plan.k31"));
    auto session = Session::load(folder.path("plan.k31"));
    if (!session)
      return "Load: " + session.error().message;
    BindOptions options;
    options.weights = weights;
    auto bound = (*session)->bind(options);
    return bound ? "(accepted)" : bound.error().message;
  }
  std::string refusal() { return refusal(folder.path()); }
  std::string damage(const std::string &from, const std::string &to) { // in the header, without changing its length
    std::string bytes = read(folder.path("model.safetensors"));
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos);
    EXPECT_TRUE(write_file(folder.path("model.safetensors"), bytes.replace(at, from.size(), to)));
    return refusal();
  }
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(WeightsRefusal, MissingFolderAndFile) {
  EXPECT_EQ(refusal(), "(accepted)");
  EXPECT_HAS(refusal(""), "no checkpoint is given");
  EXPECT_HAS(refusal(folder.path("absent")), "cannot open");
  std::filesystem::remove(folder.path("model.safetensors"));
  EXPECT_HAS(refusal(), "model.safetensors': No such file");
}

TEST_F(WeightsRefusal, WrongSize) {
  const std::string bytes = read(folder.path("model.safetensors"));
  ASSERT_TRUE(write_file(folder.path("model.safetensors"), bytes.substr(0, bytes.size() - 1)));
  EXPECT_HAS(refusal(), "bytes, the plan expects " + std::to_string(bytes.size()));
}

TEST_F(WeightsRefusal, NamesTheTensorThatDiffers) {
  EXPECT_HAS(damage("layers.5.bias", "layers.6.bias"), "tensor 'layers.5.bias' is not in the checkpoint");
}
TEST_F(WeightsRefusal, NamesAnotherShape) {
  EXPECT_HAS(damage("\"shape\":[16,16]", "\"shape\":[8,32 ]"),
             "tensor 'table.weight' is F32 [8, 32], the plan expects F32 [16, 16]");
}
TEST_F(WeightsRefusal, NamesAnotherPlace) {
  const std::string text = damage("layers.5.bias", "layers.x.bias");
  damage("layers.3.bias", "layers.5.bias");
  EXPECT_HAS(damage("layers.x.bias", "layers.3.bias"), "tensor 'layers.3.bias' is at byte");
}
TEST_F(WeightsRefusal, UnusedDifferences) {
  plan.key->checkpoint[3] = 'x';
  EXPECT_HAS(refusal(), "every tensor that the plan uses is in place");
}
TEST_F(WeightsRefusal, NamesAnotherConfig) {
  ASSERT_TRUE(write_file(folder.path("config.json"), "{\"rms_norm_eps\": 1e-5}"));
  EXPECT_HAS(refusal(), "config.json' hashes to ");
  plan.key->checkpoint = read_checkpoint(folder.path())->hash;
  EXPECT_EQ(refusal(), "(accepted)");
  ASSERT_TRUE(write_file(folder.path("config.json"), "{\"rms_norm_eps\": 1e-6}"));
  EXPECT_HAS(refusal(), "config.json' hashes to ");
  EXPECT_HAS(refusal(), "the file differs or is missing; name the checkpoint that the plan was made from");
  plan.key->checkpoint.resize(kHeaderDigits); // as format 1.0 has it
  EXPECT_EQ(refusal(), "(accepted)");
  plan.key->checkpoint.clear();
  EXPECT_HAS(refusal(), "the plan expects ''");
}
// A reader without memory ends the load with one line, not the process: nothing is thrown out of its thread.
TEST_F(WeightsRefusal, ReadersWithoutMemory) {
  struct Starved : weights::Sink {
    std::byte *direct(uint32_t, uint64_t) override { return nullptr; }
    Result<std::span<std::byte>> buffer() override { throw std::bad_alloc(); }
    Result<void> place(const weights::Layout &, uint64_t, uint64_t, uint32_t, uint64_t) override { return {}; }
    Result<void> put(uint64_t, uint32_t, uint64_t) override { return {}; }
    Result<void> finish() override { return {}; }
  };
  write(plan, folder.path("plan.k31"));
  const auto file = PlanFile::open(folder.path("plan.k31"));
  ASSERT_TRUE(file) << file.error().message;
  const auto starved = []() -> Result<std::unique_ptr<weights::Sink>> { return std::make_unique<Starved>(); };
  const auto none = []() -> Result<std::unique_ptr<weights::Sink>> { throw std::bad_alloc(); };
  for (const weights::MakeSink &make : {weights::MakeSink(starved), weights::MakeSink(none)}) {
    const auto source = weights::open_checkpoint(file->plan(), folder.path());
    ASSERT_TRUE(source);
    const auto loaded = weights::load(file->plan(), {*file->plan().mesh()}, **source, make, 3, {});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, Code::out_of_memory);
    EXPECT_HAS(loaded.error().message, "no memory is left to read weights");
  }
}
TEST_F(WeightsRefusal, DamagedHeader) { EXPECT_HAS(damage("{\"layers", "[\"layers"), "the header holds"); }

TEST_F(WeightsRefusal, NumbersOfAStack) {
  const auto with = [&](auto change) {
    plan::PlanT saved = sample_plan();
    std::swap(saved, plan);
    add_weights(plan, folder.path());
    change(*plan.weights[1], *plan.weights[1]->layout);
    const std::string text = refusal();
    std::swap(saved, plan);
    return text;
  };
  using S = plan::WeightStackT;
  using L = plan::LayoutT;
  EXPECT_HAS(with([](S &s, L &) { s.pattern = "bias"; }), "2 numbered members, expected one {}");
  EXPECT_HAS(with([](S &s, L &) { s.pattern = "{}{}"; }), "expected one {}");
  EXPECT_HAS(with([](S &s, L &) { s.members = {5, 3}; }), "lists member 3 after 5");
  EXPECT_HAS(with([](S &s, L &) { s.offsets.pop_back(); }), "2 members, but 2 files and 1 offsets");
  EXPECT_HAS(with([](S &s, L &) { s.files[1] = 1; }), "is in file 1 of 1");
  EXPECT_HAS(with([](S &s, L &) { s.offsets[1] = ~uint64_t(0); }), "at offset 18446744073709551615");
  EXPECT_HAS(with([](S &s, L &) { s.dtype = "F4"; }), "has the dtype 'F4'");
  EXPECT_HAS(with([](S &s, L &) { s.shape = {uint64_t(1) << 63, 4}; }), "more than 64 bits");
  EXPECT_HAS(with([](S &s, L &) { s.shape = {0}; }), "shape of no bytes");
  EXPECT_HAS(with([](S &s, L &) { s.arena = kIo; }), "no arena of kind weights");
  EXPECT_HAS(with([](S &s, L &) { s.arena = 9; }), "no arena of kind weights");
  EXPECT_HAS(with([](S &s, L &) { s.stride = 65; }), "ends outside its arena");
  EXPECT_HAS(with([](S &s, L &) { s.stride = ~uint64_t(0); }), "ends outside its arena");
  EXPECT_HAS(with([](S &s, L &) { s.dest = ~uint64_t(0) - 8; }), "ends outside its arena");
  EXPECT_HAS(with([](S &, L &l) { l.row_bytes = 0; }), "rows of 0 bytes do not divide");
  EXPECT_HAS(with([](S &, L &l) { l.row_bytes = 48; }), "rows of 48 bytes do not divide");
  EXPECT_HAS(with([](S &, L &l) { l.row_begin = 1; }), "takes 1 rows from row 1, but a member has 1");
  EXPECT_HAS(with([](S &, L &l) { l.row_count = ~uint64_t(0); }), "but a member has 1");
  EXPECT_HAS(with([](S &, L &l) { l.byte_begin = 1; }), "takes 64 bytes from byte 1");
  EXPECT_HAS(with([](S &, L &l) { l.group = 0; }), "groups of 0 rows");
  EXPECT_HAS(with([](S &, L &l) { l.group_begin = uint64_t(1) << 62; }), "ends outside its arena");
  EXPECT_HAS(with([](S &, L &l) {
               l.row_bytes = l.byte_count = 4, l.row_count = l.group = 16;
               l.dest_row_bytes = 3;
             }),
             "they overlap");
  EXPECT_HAS(with([](S &, L &l) {
               l.row_bytes = l.byte_count = l.dest_row_bytes = 4, l.row_count = 16, l.group = 8, l.group_stride = 7;
             }),
             "they overlap");
  plan.files[0]->name = "../model.safetensors";
  EXPECT_HAS(refusal(), "no plain file name");
}

} // namespace
} // namespace k31::test
