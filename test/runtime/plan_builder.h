// A small but complete plan for tests to run, or to break in one place.
#pragma once
#include "runtime/base/safetensors.h"
#include "runtime/schema/plan_generated.h"
#include <filesystem>
#include <string>
#include <vector>

namespace k31::test {

// A folder that goes away with the test.
class TempFolder {
public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder &) = delete;
  std::string path(const std::string &name = "") const { return name.empty() ? folder : folder + "/" + name; }

private:
  std::string folder;
};

// Index of each arena of sample_plan().
enum SampleArena : uint32_t { kWeights, kIo, kActivations, kCache };

// One entry of 4 rows, 2 segments, 2 logit rows; vocabulary and width 16: logits = 2 (table[token] + bias 0 + bias 1). Its
// commands use two streams, an event, a copy and a collective. No weights: the table and the biases are zero.
plan::PlanT sample_plan();

// The tensors of the plan's checkpoint: "table.weight" F32 [16, 16], "layers.{}.bias" F32 [16] for 3 and 5.
struct SampleWeights {
  std::vector<float> table, bias3, bias5;
};
SampleWeights sample_weights();
// Writes the checkpoint into `folder` and adds it to the plan.
void add_weights(plan::PlanT &plan, const std::string &folder);

plan::LaunchT &launch(plan::PlanT &plan, int i); // command i of the first entry
std::unique_ptr<plan::SliceT> slice(uint32_t arena, uint64_t offset, uint64_t bytes, plan::Access access = plan::Access::read);
std::unique_ptr<plan::BindingT> binding(std::string name, plan::DType type, std::vector<uint64_t> shape, uint32_t arena,
                                        uint64_t offset);
template <class Table> plan::CommandUnion command(Table table) {
  plan::CommandUnion out;
  out.Set(std::move(table));
  return out;
}

std::string flatbuffer(const plan::PlanT &plan); // without trailer
std::string file(const plan::PlanT &plan);       // with it
void write(const plan::PlanT &plan, const std::string &path);
std::string read(const std::string &path);

// Layout that takes whole rows and keeps their order.
std::unique_ptr<plan::LayoutT> plain_layout(uint64_t rows, uint64_t row_bytes);

} // namespace k31::test
