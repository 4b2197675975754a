#include "compiler/Conversion/K31ToOps/ExpertForm.h"
#include "compiler/LinkCost.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;

namespace k31 {

StringRef nameOf(ExpertForm form) {
  return form == ExpertForm::replicate ? "replicate" : form == ExpertForm::dispatch ? "dispatch" : "two-level";
}

namespace {

// One form at the capacity of the bucket, a layer.
struct Cost {
  double seconds = 0, moved = 0, across = 0; // bytes that enter a rank; those of them that come from other hosts
};

class Costs {
public:
  Costs(const Mesh &mesh, const Target &target, int64_t rows, Type activation, model::LatentMoEOp op)
      : mesh(mesh), cuda(target.isCuda()), speeds(target.speeds()), rows(rows) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    const double hidden = static_cast<double>(x.getShape().back());
    columns = static_cast<double>(op.getLatent() ? op.getLatent() : x.getShape().back()),
    choices = static_cast<double>(op.getTopK());
    element = activation.getIntOrFloatBitWidth() / 8.0;
    // The router and the way into the latent space, as multiplications and additions.
    before = 2 * hidden * (static_cast<double>(op.getExperts()) + (op.getLatent() ? columns : 0));
  }

  Cost of(ExpertForm form) const {
    const double T = static_cast<double>(rows), own = T / static_cast<double>(mesh.tp), value = columns * element,
                 row = value + 8 * choices;
    Cost cost;
    if (form == ExpertForm::replicate) {
      const double all = T * static_cast<double>(mesh.edp());
      collective(cost, Exchange::allGather, coll::Axis::edp, all * value);
      collective(cost, Exchange::allGather, coll::Axis::edp, all * choices * 4); // ids
      collective(cost, Exchange::allGather, coll::Axis::edp, all * choices * 4); // weights
      collective(cost, Exchange::reduceScatter, coll::Axis::edp, all * value);
      collective(cost, Exchange::allReduce, mesh.ep >= mesh.tp ? coll::Axis::tp : coll::Axis::ep, T * value);
      cost.seconds += T * before / speeds.products;
      return cost;
    }
    cost.seconds += own * before / speeds.products;
    if (form == ExpertForm::dispatch) {
      leg(cost, coll::Axis::ep, own, row, value);
    } else {
      leg(cost, coll::Axis::rail, own, row, value);
      leg(cost, coll::Axis::node, own * static_cast<double>(mesh.hosts()), row, value);
    }
    if (mesh.tp > 1) {
      cost.seconds += speeds.launch + 2 * own * element * columns / speeds.memory;
      collective(cost, Exchange::allGather, coll::Axis::tp, T * value);
    }
    return cost;
  }

private:
  // There and back between the ranks of an axis, `from` rows of this rank, whole pieces: pack, unpack and sum make three
  // launches. They touch live rows alone: of uniform choices a row has some among `size` equal shares in 1 - (1 - 1/size)^k of
  // the cases.
  void leg(Cost &cost, coll::Axis axis, double from, double row, double value) const {
    const double size = static_cast<double>(sizeOf(mesh, axis));
    collective(cost, Exchange::allToAll, axis, from * size * row);
    collective(cost, Exchange::allToAll, axis, from * size * value);
    const double live = from * size * (1 - std::pow(1 - 1 / size, choices));
    cost.seconds += 3 * speeds.launch + live * (4 * row + value) / speeds.memory;
  }

  // A group may have several ranks on a host: only what comes from others takes the network.
  void collective(Cost &cost, Exchange exchange, coll::Axis axis, double bytes) const {
    const int64_t ranks = sizeOf(mesh, axis);
    if (ranks < 2)
      return;
    const bool oneHost = insideHost(mesh, axis);
    const int64_t distance = axis == coll::Axis::edp ? mesh.tp : axis == coll::Axis::rail ? mesh.node : 1;
    const int64_t here = oneHost ? ranks : std::clamp<int64_t>(mesh.node / distance, 1, ranks);
    const double others = static_cast<double>(ranks - 1), away = static_cast<double>(ranks - here) / others;
    const double entering = bytes * others / static_cast<double>(ranks) * (exchange == Exchange::allReduce ? 2 : 1);
    cost.moved += entering, cost.across += entering * away;
    cost.seconds += librarySeconds(cuda, exchange, static_cast<uint64_t>(oneHost ? bytes : bytes * away), ranks, oneHost);
  }

  const Mesh mesh;
  const bool cuda;
  const Target::Speeds &speeds;
  const int64_t rows;
  double columns = 0, choices = 0, element = 0, before = 0;
};

// Why a form cannot be had, or nothing.
std::string obstacle(ExpertForm form, const Mesh &mesh, int64_t rows) {
  if (form == ExpertForm::replicate)
    return "";
  if (rows % mesh.tp)
    return llvm::formatv("{0} rows have no equal shares for {1} tp ranks", rows, mesh.tp).str();
  if (form == ExpertForm::twoLevel && mesh.hosts() < 2)
    return mesh.ep > mesh.node
               ? llvm::formatv("groups of {0} experts' ranks have no equal parts on hosts of {1}", mesh.ep, mesh.node).str()
               : "each group of experts lies on one host";
  return "";
}

} // namespace

ExpertChoice chooseExpertForm(const Mesh &mesh, const EntryOptions &options, const Bucket &bucket, Type activation,
                              model::LatentMoEOp op) {
  if (mesh.ep == 1)
    return {};
  const Costs costs(mesh, *options.target, bucket.rows, activation, op);
  ExpertChoice choice;
  Note note{"experts", "", llvm::formatv("{0} rows a dp group, {1} ranks of experts", bucket.rows, mesh.ep), {}};
  if (mesh.hosts() > 1)
    note.reason += llvm::formatv(" on {0} hosts", mesh.hosts());
  std::string refused;
  double least = 0;
  for (ExpertForm form : {ExpertForm::replicate, ExpertForm::dispatch, ExpertForm::twoLevel}) {
    const StringRef name = nameOf(form);
    if (const std::string why = obstacle(form, mesh, bucket.rows); !why.empty()) {
      if (form != ExpertForm::twoLevel || options.moeExchange == name)
        refused += llvm::formatv("; no {0}: {1}", name, why);
      continue;
    }
    const Cost cost = costs.of(form);
    note.candidates.push_back({name.str(), nanoseconds(cost.seconds)});
    note.reason += llvm::formatv("; {0} moves {1} bytes a rank", name, static_cast<uint64_t>(cost.moved));
    if (cost.across > 0)
      note.reason += llvm::formatv(", {0} between hosts", static_cast<uint64_t>(cost.across));
    const bool better = options.moeExchange == "auto" ? note.candidates.size() == 1 || cost.seconds < least
                                                      : note.candidates.size() == 1 || options.moeExchange == name;
    if (better)
      choice.form = form, least = cost.seconds;
  }
  note.choice = nameOf(choice.form).str();
  note.reason += refused;
  if (options.moeExchange == note.choice)
    note.reason += "; asked for by --moe-exchange";
  choice.why = std::move(note);
  return choice;
}

} // namespace k31
