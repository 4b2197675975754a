// All ranks of one plan in this process, a thread each while something runs.
#pragma once
#include "runtime/base/cat.h"
#include "runtime/comm/local.h"
#include "runtime/engine/session_executor.h"
#include "runtime/plan/mesh.h"
#include "test/e2e/e2e.h"
#include <functional>
#include <thread>

namespace k31::e2e {

struct Rank {
  std::unique_ptr<comm::LocalWorld> world;
  std::unique_ptr<Session> session;
  std::unique_ptr<engine::SessionExecutor> executor;
};

class RankThreads {
public:
  RankThreads(const Options &options, const std::string &plan) : options(options), plan(plan) {}

  Result<void> start() {
    K31_ASSIGN(const auto first, Session::load(plan));
    const uint32_t count = world_size(*first->plan().mesh());
    K31_ASSIGN(memory, comm::LocalMemory::make(count));
    ranks.resize(count);
    return each([&](Rank &rank, uint32_t number) -> Result<void> {
      rank.world = std::make_unique<comm::LocalWorld>(*memory, number);
      K31_ASSIGN(rank.session, Session::load(plan));
      K31_TRY(rank.session->bind({.weights = options.weights, .threads = 1, .poison = true, .world = rank.world.get()}));
      K31_ASSIGN(engine::SessionExecutor made, engine::SessionExecutor::make(*rank.session, number));
      rank.executor = std::make_unique<engine::SessionExecutor>(std::move(made));
      return {};
    });
  }

  size_t size() const { return ranks.size(); }
  const plan::Mesh &mesh() const { return *ranks[0].session->plan().mesh(); }

  Result<void> each(const std::function<Result<void>(Rank &, uint32_t)> &f) {
    std::vector<Result<void>> ended(ranks.size());
    {
      std::vector<std::jthread> threads;
      for (uint32_t i = 0; i < ranks.size(); ++i)
        threads.emplace_back([&, i] { ended[i] = f(ranks[i], i); });
    }
    for (uint32_t i = 0; i < ended.size(); ++i)
      if (!ended[i])
        return context(cat(plan, ", rank ", i), std::move(ended[i].error()));
    return {};
  }

private:
  const Options &options;
  std::string plan;
  std::unique_ptr<comm::LocalMemory> memory;
  std::vector<Rank> ranks;
};

} // namespace k31::e2e
