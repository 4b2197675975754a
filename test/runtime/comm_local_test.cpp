// Collectives among ranks that are threads of this process: the shared memory does not know the difference.
#include "runtime/base/cat.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/local.h"
#include "test/runtime/plan_builder.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace k31::test {
namespace {

// Runs `body` on every rank and fails the test with the first error.
void on_ranks(uint32_t ranks, const std::function<Result<void>(comm::World &world)> &body) {
  const auto memory = comm::LocalMemory::make(ranks);
  ASSERT_TRUE(memory);
  std::vector<Result<void>> results(ranks);
  {
    std::vector<std::jthread> threads;
    for (uint32_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        comm::LocalWorld world(**memory, r);
        results[r] = body(world);
      });
  }
  for (uint32_t r = 0; r < ranks; ++r)
    EXPECT_TRUE(results[r]) << "rank " << r << ": " << results[r].error().message;
}

struct BuiltMesh {
  flatbuffers::FlatBufferBuilder builder;
  const plan::Mesh *mesh;
  BuiltMesh(uint32_t tp, uint32_t dp, uint32_t ep, uint32_t pp, uint32_t node = 1) {
    builder.Finish(plan::CreateMesh(builder, tp, dp, ep, pp, node));
    mesh = flatbuffers::GetRoot<plan::Mesh>(builder.GetBufferPointer());
  }
};

// A collective of the schema, alone.
struct Built {
  flatbuffers::FlatBufferBuilder builder;
  const plan::Collective *collective;
  Built(plan::CollectiveOp op, plan::MeshAxis axis, plan::DType type, uint64_t count, uint32_t peer = 0) {
    plan::CollectiveT c;
    c.op = op, c.axis = axis, c.dtype = type, c.count = count, c.peer = peer;
    c.source = slice(0, 0, 0), c.dest = slice(0, 0, 0);
    builder.Finish(plan::CreateCollective(builder, &c));
    collective = flatbuffers::GetRoot<plan::Collective>(builder.GetBufferPointer());
  }
};

Result<void> perform(const Built &built, comm::Group &group, const std::byte *source, std::byte *dest,
                     std::span<std::byte> scratch) {
  comm::Traffic traffic;
  return comm::perform(*built.collective, group, {source, dest}, scratch, traffic);
}

std::vector<float> values(uint32_t rank, size_t count) {
  std::mt19937 random(rank + 1);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float &x : out)
    x = normal(random);
  return out;
}
template <class T> std::byte *bytes(std::vector<T> &v) { return reinterpret_cast<std::byte *>(v.data()); }

#define EXPECT_SAME(a, b)                                                                                                        \
  if (!((a) == (b)))                                                                                                             \
  return fail(Code::internal, cat(#a, " is not ", #b, ", line ", __LINE__))

Result<void> sums(comm::Communicator &all, plan::MeshAxis axis, size_t count) {
  comm::Group &group = all.group(axis);
  std::vector<std::byte> scratch(comm::kScratch);
  const auto members = group_of(*BuiltMesh(2, 2, 4, 2).mesh, axis, all.rank());
  std::vector<float> expected(count), mine = values(all.rank(), count), sum(count);
  for (const uint32_t member : members) { // in the order of the ranks
    const auto theirs = values(member, count);
    for (size_t i = 0; i < count; ++i)
      expected[i] = member == members[0] ? theirs[i] : expected[i] + theirs[i];
  }
  const Built reduce(plan::CollectiveOp::all_reduce, axis, plan::DType::f32, count);
  K31_TRY(perform(reduce, group, bytes(mine), bytes(sum), scratch));
  EXPECT_SAME(sum, expected); // to the last bit
  std::vector<float> in_place = mine;
  K31_TRY(perform(reduce, group, bytes(in_place), bytes(in_place), scratch));
  EXPECT_SAME(in_place, expected);
  if (count % group.size() == 0) {
    const Built scatter(plan::CollectiveOp::reduce_scatter, axis, plan::DType::f32, count);
    std::vector<float> part(count / group.size());
    K31_TRY(perform(scatter, group, bytes(mine), bytes(part), scratch));
    const auto begin = expected.begin() + int64_t(group.rank() * part.size());
    EXPECT_SAME(part, std::vector<float>(begin, begin + int64_t(part.size())));
  }
  return {};
}

TEST(CommLocal, SumsInTheOrderOfTheRanksOnEveryAxis) {
  const BuiltMesh mesh(2, 2, 4, 2);
  on_ranks(8, [&](comm::World &world) -> Result<void> {
    K31_ASSIGN(const auto all, comm::Communicator::make(world, *mesh.mesh));
    for (const plan::MeshAxis axis :
         {plan::MeshAxis::tp, plan::MeshAxis::dp, plan::MeshAxis::ep, plan::MeshAxis::pp, plan::MeshAxis::edp})
      for (const size_t count : {1u, 8u, 1000u, 16384u, 16385u, 150000u})
        K31_TRY(sums(*all, axis, count));
    return {};
  });
}

// Sums of bf16 are rounded once: 1 + 4 * 2^-9 is 1.0078125, where a rounding at each step would stay at 1.
TEST(CommLocal, RoundsBf16Once) {
  const BuiltMesh mesh(5, 1, 5, 1);
  on_ranks(5, [&](comm::World &world) -> Result<void> {
    K31_ASSIGN(const auto all, comm::Communicator::make(world, *mesh.mesh));
    for (const size_t count : {3u, 100003u}) {
      const float mine = world.rank() == 0 ? 1.0f : std::ldexp(1.0f, -9);
      std::vector<uint16_t> x(count, uint16_t(std::bit_cast<uint32_t>(mine) >> 16));
      std::vector<std::byte> scratch(comm::kScratch);
      const Built reduce(plan::CollectiveOp::all_reduce, plan::MeshAxis::tp, plan::DType::bf16, count);
      K31_TRY(perform(reduce, all->group(plan::MeshAxis::tp), bytes(x), bytes(x), scratch));
      for (const uint16_t bits : x)
        EXPECT_SAME(std::bit_cast<float>(uint32_t(bits) << 16), 1.0078125f);
    }
    return {};
  });
}

TEST(CommLocal, MovesBytes) {
  const BuiltMesh mesh(3, 1, 3, 1);
  on_ranks(3, [&](comm::World &world) -> Result<void> {
    K31_ASSIGN(const auto all, comm::Communicator::make(world, *mesh.mesh));
    comm::Group &group = all->group(plan::MeshAxis::tp);
    const uint32_t me = group.rank();
    std::vector<std::byte> scratch(comm::kScratch);
    for (const size_t count : {3u, 99u, 600000u}) {
      const auto of = [&](uint32_t rank) {
        std::vector<int32_t> x(count);
        for (size_t i = 0; i < count; ++i)
          x[i] = int32_t(rank * 1000003 + i);
        return x;
      };
      std::vector<int32_t> mine = of(me), gathered(3 * count), exchanged(count), shared = mine;
      const auto run = [&](plan::CollectiveOp op, std::vector<int32_t> &from, std::vector<int32_t> &to, uint32_t peer = 0) {
        const Built c(op, plan::MeshAxis::tp, plan::DType::i32, count, peer);
        return perform(c, group, bytes(from), bytes(to), scratch);
      };
      K31_TRY(run(plan::CollectiveOp::all_gather, mine, gathered));
      K31_TRY(run(plan::CollectiveOp::dispatch, mine, exchanged));
      K31_TRY(run(plan::CollectiveOp::broadcast, mine, shared));
      const size_t piece = count / 3;
      for (uint32_t r = 0; r < 3; ++r) {
        const auto theirs = of(r);
        EXPECT_SAME(std::equal(theirs.begin(), theirs.end(), gathered.begin() + int64_t(r * count)), true);
        EXPECT_SAME(std::equal(theirs.begin() + int64_t(me * piece), theirs.begin() + int64_t((me + 1) * piece),
                               exchanged.begin() + int64_t(r * piece)),
                    true);
      }
      EXPECT_SAME(shared, of(0));
      // Round the ring: who sends first waits until the mail was taken, so the last one receives first.
      std::vector<int32_t> got(count);
      if (me < 2)
        K31_TRY(run(plan::CollectiveOp::send, mine, got, me + 1));
      if (me > 0) {
        K31_TRY(run(plan::CollectiveOp::recv, mine, got, me - 1));
        EXPECT_SAME(got, of(me - 1));
      }
    }
    K31_ASSIGN(const uint64_t most, comm::largest(all->all(), 7 + me % 2));
    EXPECT_SAME(most, 8u);
    std::vector<std::byte> text(me == 1 ? 5 : 0, std::byte(9));
    K31_TRY(comm::share(all->all(), text, 1));
    EXPECT_SAME(text, std::vector<std::byte>(5, std::byte(9)));
    return {};
  });
}

// Four ranks on two hosts. Rank r sends rank s the first (r + 2 s) mod 5 fifths of a piece, or whole pieces to rank 0 alone; what
// is behind these bytes stays as it was.
TEST(CommLocal, ExchangesLiveBytesAndCountsThem) {
  const BuiltMesh mesh(4, 1, 4, 1, 2);
  on_ranks(4, [&](comm::World &world) -> Result<void> {
    K31_ASSIGN(const auto all, comm::Communicator::make(world, *mesh.mesh));
    comm::Group &group = all->group(plan::MeshAxis::ep);
    const uint32_t me = group.rank();
    std::vector<std::byte> scratch(comm::kScratch);
    for (const size_t unit : {1u, 16u, 100'003u}) // of the last, a rank's pieces take seven exchanges
      for (const bool to_one : {false, true}) {
        const size_t piece = 5 * unit;
        const auto live = [&](uint32_t from, uint32_t to) { return to_one ? (to == 0 ? 5 : 0) : (from + 2 * to) % 5; };
        const auto value = [&](uint32_t from, uint32_t to, size_t i) { return std::byte((from * 37 + to * 11 + i) % 251); };
        std::vector<std::byte> source(4 * piece), dest(4 * piece, std::byte(255));
        std::vector<int32_t> counts(4);
        for (uint32_t r = 0; r < 4; ++r) {
          counts[r] = int32_t(live(me, r));
          for (size_t i = 0; i < piece; ++i)
            source[r * piece + i] = value(me, r, i);
        }
        flatbuffers::FlatBufferBuilder builder;
        plan::CollectiveT c;
        c.op = plan::CollectiveOp::dispatch, c.axis = plan::MeshAxis::ep, c.dtype = plan::DType::u8, c.count = 4 * piece;
        c.source = slice(0, 0, 0), c.dest = slice(0, 0, 0), c.live = slice(0, 0, 16), c.live_unit = unit;
        builder.Finish(plan::CreateCollective(builder, &c));
        const auto *collective = flatbuffers::GetRoot<plan::Collective>(builder.GetBufferPointer());
        comm::Traffic traffic;
        K31_TRY(comm::perform(*collective, group, {source.data(), dest.data(), counts.data()}, scratch, traffic));
        comm::Traffic expected{.calls = 1};
        for (uint32_t r = 0; r < 4; ++r) {
          for (size_t i = 0; i < piece; ++i)
            EXPECT_SAME(dest[r * piece + i], i < live(r, me) * unit ? value(r, me, i) : std::byte(255));
          if (r != me)
            expected.add(r / 2 != me / 2, piece, live(me, r) * unit);
        }
        EXPECT_SAME(traffic.calls, 1u);
        EXPECT_SAME(traffic.node.capacity, piece);
        EXPECT_SAME(traffic.node.live, expected.node.live);
        EXPECT_SAME(traffic.across.capacity, 2 * piece);
        EXPECT_SAME(traffic.across.live, expected.across.live);
        counts[me] = 6;
        const auto done = comm::perform(*collective, group, {source.data(), dest.data(), counts.data()}, scratch, traffic);
        EXPECT_SAME(done.has_value(), false);
        EXPECT_SAME(done.error().message.starts_with(cat("dispatch over ep: 6 units of ", unit)), true);
      }
    return {};
  });
}

// All addends to everybody, or a piece and its sum: counted as what was handed on.
TEST(CommLocal, CountsSums) {
  const BuiltMesh mesh(3, 1, 3, 1, 3);
  on_ranks(3, [&](comm::World &world) -> Result<void> {
    K31_ASSIGN(const auto all, comm::Communicator::make(world, *mesh.mesh));
    std::vector<std::byte> scratch(comm::kScratch), x(4 * 30000);
    for (const auto &[count, bytes] : {std::pair<size_t, uint64_t>{10, 2 * 40}, {30000, 4 * 40000}}) {
      const Built reduce(plan::CollectiveOp::all_reduce, plan::MeshAxis::tp, plan::DType::f32, count);
      comm::Traffic traffic;
      K31_TRY(comm::perform(*reduce.collective, all->group(plan::MeshAxis::tp), {x.data(), x.data()}, scratch, traffic));
      EXPECT_SAME(traffic.node.live, bytes);
      EXPECT_SAME(traffic.across.live, 0u);
    }
    return {};
  });
}

// The last rank posts and goes on; the others take the posts late, in order. More than fit wait for the slowest.
TEST(CommLocal, PostsWaitToBeCollected) {
  const BuiltMesh mesh(1, 1, 1, 3);
  std::atomic<uint32_t> posted = 0, collected = 0;
  on_ranks(3, [&](comm::World &world) -> Result<void> {
    K31_ASSIGN(const auto all, comm::Communicator::make(world, *mesh.mesh));
    comm::Group &group = all->group(plan::MeshAxis::pp);
    constexpr uint32_t count = 3 * comm::Group::kPosts;
    const auto value = [](uint32_t number) { return std::vector<uint32_t>(1 + number * 97 % 8192, number); };
    if (group.rank() == 2) {
      for (uint32_t i = 0; i < count; ++i) {
        const std::vector<uint32_t> bytes = value(i);
        K31_TRY(group.post(std::as_bytes(std::span(bytes))));
        EXPECT_GE(collected + comm::Group::kPosts, i); // which is one behind what it has taken, at most
        posted = i + 1;
      }
      return {};
    }
    while (posted < comm::Group::kPosts) // it does not wait for us so far
      std::this_thread::yield();
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<uint32_t> got(value(i).size());
      K31_TRY(group.collect(std::as_writable_bytes(std::span(got)), 2));
      EXPECT_SAME(got, value(i));
      if (group.rank() == 0) { // the slower one
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        collected = i + 1;
      }
    }
    return {};
  });
}

// Ranks with other plan files than the first rank's would wait for each other, or write where nobody expects it.
TEST(CommLocal, RefusesRanksWithOtherPlans) {
  const BuiltMesh mesh(3, 1, 3, 1);
  on_ranks(3, [&](comm::World &world) -> Result<void> {
    Digest plan{};
    K31_TRY(comm::Communicator::make(world, *mesh.mesh, plan));
    plan[15] = world.rank() < 2 ? std::byte{1} : std::byte{2};
    const auto made = comm::Communicator::make(world, *mesh.mesh, plan);
    EXPECT_FALSE(made) << world.rank();
    if (!made)
      EXPECT_EQ(made.error().message,
                "rank 2 has a plan file with hash 00000000000000000000000000000002, rank 0 one with "
                "00000000000000000000000000000001; start all ranks with the same plan, copied to every host");
    return {};
  });
}

// The ranks of a mesh as the design numbers them: rank = (p dp + d) tp + t.
TEST(CommMesh, GroupsOfRanks) {
  const BuiltMesh built(2, 4, 4, 2); // an expert group spans two dp groups
  const plan::Mesh &m = *built.mesh;
  using Ranks = std::vector<uint32_t>;
  EXPECT_EQ(world_size(m), 16u);
  EXPECT_EQ(group_of(m, plan::MeshAxis::tp, 5), (Ranks{4, 5}));
  EXPECT_EQ(group_of(m, plan::MeshAxis::dp, 5), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(group_of(m, plan::MeshAxis::ep, 5), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(group_of(m, plan::MeshAxis::edp, 5), (Ranks{5, 7}));
  EXPECT_EQ(group_of(m, plan::MeshAxis::pp, 5), (Ranks{5, 13}));
  EXPECT_EQ(group_of(m, plan::MeshAxis::dp, 13), (Ranks{9, 11, 13, 15}));
  EXPECT_EQ(group_of(m, plan::MeshAxis::none, 5), (Ranks{5}));
  EXPECT_EQ(coordinate(m, plan::MeshAxis::ep, 14), 2u);
  const BuiltMesh within(4, 1, 2, 1); // two copies of the experts inside a tp group
  EXPECT_EQ(group_of(*within.mesh, plan::MeshAxis::ep, 3), (Ranks{2, 3}));
  EXPECT_EQ(plan::ranks_along(*within.mesh, plan::MeshAxis::edp), 1u);
}

TEST(CommMesh, RefusesAnotherNumberOfRanks) {
  const BuiltMesh mesh(2, 2, 4, 1);
  on_ranks(3, [&](comm::World &world) -> Result<void> {
    const auto made = comm::Communicator::make(world, *mesh.mesh);
    EXPECT_SAME(bool(made), false);
    EXPECT_SAME(made.error().message,
                "the plan is for 4 ranks (tp=2,dp=2,pp=1), but 3 processes were started; start 4, or compile "
                "the plan for a mesh of 3");
    return {};
  });
}

} // namespace
} // namespace k31::test
