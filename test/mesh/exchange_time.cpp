// exchange_time PLAN [ROUNDS]: runs every entry of a plan of exchange_plan.py on as many processes as it has ranks, checks what
// the last collective of each gave to the last bit, and prints the time of one collective in microseconds: median over the
// rounds.
#include "runtime/arena_access.h"
#include "runtime/base/cat.h"
#include "runtime/comm/local.h"
#include "runtime/plan/dtype.h"
#include "runtime/schema/plan_generated.h"
#include "runtime/schema/shares.h"
#include "runtime/session.h"
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace k31 {
namespace {

using Bytes = std::vector<std::byte>;

// Small whole numbers and quarters: sums of few are exact in any order, in bf16 too.
float value(uint32_t rank, uint64_t i) {
  uint64_t h = (i + 1) * 0x9e3779b97f4a7c15u ^ (rank + 1) * 0xc2b2ae3d27d4eb4fu;
  h ^= h >> 29;
  return float(int(h % 41) - 20) / 4;
}
void put(Bytes &bytes, plan::DType type, uint64_t i, float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if (type == plan::DType::bf16)
    reinterpret_cast<uint16_t *>(bytes.data())[i] = uint16_t(bits >> 16);
  else
    reinterpret_cast<uint32_t *>(bytes.data())[i] = bits;
}
Bytes values(plan::DType type, uint64_t count, const auto &of) {
  Bytes bytes(count * bytes_of(type));
  for (uint64_t i = 0; i < count; ++i)
    put(bytes, type, i, of(i));
  return bytes;
}

const plan::Collective *last_of(const plan::Entry &entry, uint32_t *count) {
  const plan::Collective *last = nullptr;
  *count = 0;
  for (uint32_t i = 0; i < entry.commands()->size(); ++i)
    if (entry.commands_type()->GetEnum<plan::Command>(i) == plan::Command::Collective)
      last = entry.commands()->GetAs<plan::Collective>(i), ++*count;
  return last;
}

// Live words of 16 bytes in the piece from one rank for another; all of them when timed.
int32_t live(uint32_t from, uint32_t to, int64_t words, bool all) {
  return int32_t(all ? words : words * (from + 2 * to + 1) / (3 * (to + from + 1)));
}

Result<void> run_entry(Session &session, uint32_t index, uint32_t rank, uint32_t ranks, int rounds) {
  const plan::Entry &entry = *session.plan().entries()->Get(index);
  uint32_t collectives = 0;
  const plan::Collective &c = *last_of(entry, &collectives);
  const uint64_t count = c.count(), element = bytes_of(c.dtype()), piece = count / ranks;
  const int64_t words = int64_t(piece * element / 16);
  const bool exchange = c.op() == plan::CollectiveOp::dispatch;
  const Bytes x = values(c.dtype(), count, [&](uint64_t i) { return value(rank, i); });
  int32_t units[4] = {exchange ? 0 : int32_t(entry.rows())}; // live rows, for a row op on a sum
  const auto set_units = [&](bool all) {
    for (uint32_t to = 0; to < ranks && exchange; ++to)
      units[to] = live(rank, to, words, all);
  };
  const auto run = [&] {
    const NamedInput inputs[] = {{"hidden", x}, {"counts", std::as_bytes(std::span(units))}};
    return session.run(index, inputs, {});
  };
  for (const bool all : {false, true}) {
    set_units(all);
    K31_TRY(run());
    Bytes got(c.dest()->bytes());
    K31_TRY(session.memory()->read(c.dest()->arena(), c.dest()->offset(), got));
    const auto expected = [&](uint64_t i) {
      const uint64_t at = c.op() == plan::CollectiveOp::reduce_scatter ? rank * piece + i : i;
      if (c.op() == plan::CollectiveOp::all_gather)
        return value(uint32_t(i / count), i % count);
      if (exchange)
        return value(uint32_t(i / piece), rank * piece + i % piece);
      float sum = 0;
      for (uint32_t r = 0; r < ranks; ++r)
        sum += value(r, at);
      return sum;
    };
    const Bytes want = values(c.dtype(), got.size() / element, expected);
    for (uint64_t i = 0; i < got.size(); ++i) {
      const uint64_t from = i / (piece * element);
      if (exchange && i % (piece * element) >= uint64_t(live(uint32_t(from), rank, words, all)) * 16)
        continue;
      if (got[i] != want[i])
        return fail(Code::internal, cat(entry.name()->str(), " on rank ", rank, ": byte ", i, " of ", got.size(), " is ",
                                        int(got[i]), ", expected ", int(want[i])));
    }
  }
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    K31_TRY(session.run(index, {}, {}));
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / collectives);
  }
  std::sort(times.begin(), times.end());
  if (rank == 0)
    std::printf("%s %s %.2f\n", entry.name()->c_str(), plan::EnumNameTransport(c.transport()), times[times.size() / 2]);
  std::fflush(stdout);
  return {};
}

Result<void> run_rank(Session &session, const comm::LocalMemory &memory, uint32_t rank, int rounds) {
  comm::LocalWorld world(memory, rank);
  BindOptions options;
  options.world = &world, options.synthetic = 1, options.threads = 1, options.poison = true;
  K31_TRY(session.bind(options));
  for (uint32_t i = 0; i < session.plan().entries()->size(); ++i)
    K31_TRY(run_entry(session, i, rank, memory.ranks(), rounds));
  return {};
}

int report(const Result<void> &result) {
  if (!result)
    std::fprintf(stderr, "exchange_time: %s\n", result.error().message.c_str());
  return result ? 0 : 1;
}

int run(const char *path, int rounds) {
  auto session = Session::load(path);
  if (!session)
    return report(tl::unexpected(session.error()));
  const plan::Mesh &mesh = *(*session)->plan().mesh();
  const uint32_t ranks = mesh.tp() * mesh.dp() * mesh.pp();
  auto memory = comm::LocalMemory::make(ranks);
  if (!memory)
    return report(tl::unexpected(memory.error()));
  std::vector<pid_t> children;
  for (uint32_t rank = 1; rank < ranks; ++rank)
    if (const pid_t child = ::fork(); child == 0) {
      const int code = report(run_rank(**session, **memory, rank, rounds));
      session->reset();
      std::_Exit(code);
    } else {
      children.push_back(child);
    }
  int code = report(run_rank(**session, **memory, 0, rounds));
  session->reset();
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    code |= status != 0;
  }
  return code;
}

} // namespace
} // namespace k31

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: exchange_time PLAN [ROUNDS]\n");
    return 2;
  }
  return k31::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 5);
}
