// k31-e2e parts: states of plans for several ranks. Every rank of every plan saves its part of the same state. A plan whose ranks
// get their own parts goes on as if the tokens had run; when one rank gets any other part, all its ranks refuse.
#include "runtime/engine/engine.h"
#include "test/e2e/rank_threads.h"
#include <algorithm>
#include <cstdio>
#include <numeric>

namespace k31::e2e {
namespace {

using namespace engine;
using Image = std::shared_ptr<const std::vector<std::byte>>;
using Ids = std::vector<int32_t>;

class Ranks : public RankThreads {
public:
  using RankThreads::RankThreads;

  // The parts of the state after `head`, by rank.
  Result<std::vector<Image>> save(const Ids &head) {
    std::vector<Image> parts(size());
    K31_TRY(each([&](Rank &rank, uint32_t number) -> Result<void> {
      Engine engine(*rank.executor, {.poison = true});
      K31_ASSIGN(const SequenceId id, engine.add({.tokens = head, .hold = true}));
      K31_TRY(engine.finish());
      K31_ASSIGN(std::vector<std::byte> image, engine.save(id));
      parts[number] = std::make_shared<const std::vector<std::byte>>(std::move(image));
      return {};
    }));
    return parts;
  }

  // The ids drawn after `tokens`; with parts, from the state that they are. Refused by all ranks or by none: `refusals` gets each
  // one's reason.
  Result<Ids> go_on(const Ids &tokens, const std::vector<Image> &parts, std::vector<std::string> *refusals = nullptr) {
    std::vector<Ids> drawn(size());
    std::vector<std::string> reasons(size());
    K31_TRY(each([&](Rank &rank, uint32_t number) -> Result<void> {
      Engine engine(*rank.executor, {.poison = true});
      const auto id = engine.add({.tokens = tokens, .max_tokens = 6, .state = parts.empty() ? nullptr : parts[number]});
      if (!id) {
        reasons[number] = id.error().message;
        return {};
      }
      K31_TRY(engine.finish());
      const auto out = engine.take(*id);
      if (!out || out->error)
        return fail(Code::internal, out ? out->error->message : "the sequence did not end");
      drawn[number] = out->tokens;
      return {};
    }));
    if (refusals)
      *refusals = reasons;
    else if (const auto it = std::find_if(reasons.begin(), reasons.end(), [](auto &reason) { return !reason.empty(); });
             it != reasons.end())
      return fail(Code::internal, *it);
    return drawn[0];
  }
};

// One rank gets a part that is not its own: every rank must say why it does not go on, in one line.
Result<void> refused(Ranks &ranks, const Ids &tokens, const std::vector<Image> &parts, size_t wrong, const std::string &what) {
  std::vector<std::string> reasons;
  K31_TRY(ranks.go_on(tokens, parts, &reasons));
  for (size_t rank = 0; rank < reasons.size(); ++rank) {
    const std::string expected = rank == wrong ? "it was saved by plan" : "another rank refuses its part";
    if (!reasons[rank].starts_with("saved state: ") || reasons[rank].find(expected) == std::string::npos ||
        reasons[rank].find("run the tokens again instead") == std::string::npos)
      return fail(Code::internal, cat(what, ": rank ", rank, " says '", reasons[rank], "', expected '", expected, "'"));
  }
  return {};
}

} // namespace

Result<void> parts(const Options &options) {
  Ids tokens(90);
  std::iota(tokens.begin(), tokens.end(), 300);
  const Ids head(tokens.begin(), tokens.begin() + 77);
  std::vector<std::string> plans = {options.plan};
  plans.insert(plans.end(), options.others.begin(), options.others.end());
  std::vector<std::vector<Image>> saved;
  std::vector<std::unique_ptr<Ranks>> meshes;
  for (const std::string &plan : plans) {
    meshes.push_back(std::make_unique<Ranks>(options, plan));
    K31_TRY(meshes.back()->start());
    K31_ASSIGN(std::vector<Image> images, meshes.back()->save(head));
    saved.push_back(std::move(images));
  }
  size_t refusals = 0;
  for (size_t mesh = 0; mesh < meshes.size(); ++mesh) {
    Ranks &ranks = *meshes[mesh];
    K31_ASSIGN(const Ids alone, ranks.go_on(tokens, {}));
    K31_ASSIGN(const Ids restored, ranks.go_on(tokens, saved[mesh]));
    if (restored != alone)
      return fail(Code::internal, cat(plans[mesh], ": other ids after a restore than after a run"));
    for (size_t from = 0; from < saved.size(); ++from)
      for (size_t part = 0; part < saved[from].size(); ++part)
        for (size_t wrong = 0; wrong < ranks.size(); ++wrong) {
          if (from == mesh && part == wrong)
            continue;
          std::vector<Image> mixed = saved[mesh];
          mixed[wrong] = saved[from][part];
          K31_TRY(refused(ranks, tokens, mixed, wrong,
                          cat(plans[mesh], ", rank ", wrong, " with the part of rank ", part, " of ", plans[from])));
          ++refusals;
        }
    K31_ASSIGN(const Ids again, ranks.go_on(tokens, saved[mesh])); // nothing of the refused ones stayed
    if (again != alone)
      return fail(Code::internal, cat(plans[mesh], ": other ids after refusals"));
    std::printf("%zu ranks: ids after a restore equal those of a run\n", ranks.size());
  }
  std::printf("%zu wrong parts refused by all ranks\n", refusals);
  return {};
}

} // namespace k31::e2e
