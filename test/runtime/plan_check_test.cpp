// One wrong number at a time: each is refused at Load, with the place and both values.
#include "runtime/base/cat.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/plan/check.h"
#include "runtime/plan/plan_file.h"
#include "test/runtime/plan_builder.h"
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

namespace k31::test {
namespace {

using plan::PlanT;

std::string refusal(const PlanT &plan) {
  const std::string bytes = file(plan);
  std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  memcpy(copy.get(), bytes.data(), bytes.size());
  auto result = verify_plan({copy.get(), bytes.size()});
  return result ? "(accepted)" : result.error().message;
}

struct Case {
  const char *part; // of the message
  std::function<void(PlanT &)> change;
};

void check(const std::vector<Case> &cases) {
  for (const Case &c : cases) {
    PlanT plan = sample_plan();
    plan.images[0]->code = {1};
    ASSERT_EQ(refusal(plan), "(accepted)");
    c.change(plan);
    const std::string text = refusal(plan);
    EXPECT_NE(text.find(c.part), std::string::npos) << "expected: " << c.part << "\n   found: " << text;
  }
}

plan::EntryT &entry(PlanT &p) { return *p.entries[0]; }
plan::BindingT &input(PlanT &p, const std::string &name) {
  for (auto &b : entry(p).inputs)
    if (b->name == name)
      return *b;
  throw std::runtime_error("no input " + name);
}
void remove_input(PlanT &p, const std::string &name) {
  std::erase_if(entry(p).inputs, [&](const auto &b) { return b->name == name; });
}

TEST(PlanCheck, Model) {
  check({
      {"the mesh is tp=0", [](PlanT &p) { p.mesh->tp = 0; }},
      {"expected 1 to 65536 ranks", [](PlanT &p) { p.mesh->tp = p.mesh->dp = p.mesh->pp = 60000; }},
      {"ep=2", [](PlanT &p) { p.mesh->ep = 2; }},
      {"an ep that divides the ranks of a stage", [](PlanT &p) { p.mesh->tp = 3, p.mesh->ep = 2; }},
      {"an ep that divides the ranks of a stage", [](PlanT &p) { p.mesh->dp = p.mesh->pp = 2, p.mesh->ep = 4; }},
      {"an ep that divides the ranks of a stage", [](PlanT &p) { p.mesh->tp = 4, p.mesh->dp = 3, p.mesh->ep = 6; }},
      {"node=0", [](PlanT &p) { p.mesh->node = 0; }},
      {"layers 0 to 3 of 2", [](PlanT &p) { p.model->layer_end = 3; }},
      {"layers 2 to 2 of 2", [](PlanT &p) { p.model->layer_begin = 2; }},
      {"hidden 0", [](PlanT &p) { p.model->hidden = 0; }},
      {"max_context 0", [](PlanT &p) { p.model->max_context = 0; }},
      {"activations are of type 3", [](PlanT &p) { p.model->activations = plan::DType::i32; }},
      {"end id 16 is outside the vocabulary of 16", [](PlanT &p) { p.model->eos = {16}; }},
      {"end id -1", [](PlanT &p) { p.model->eos = {-1}; }},
  });
}

TEST(PlanCheck, Memory) {
  check({
      {"arena 'io' is of kind 99", [](PlanT &p) { p.arenas[kIo]->kind = plan::ArenaKind(99); }},
      {"arena 'cache' has 18446744073709551615 bytes", [](PlanT &p) { p.arenas[kCache]->bytes = ~uint64_t(0); }},
      {"has alignment 48", [](PlanT &p) { p.arenas[kCache]->alignment = 48; }},
      {"has alignment 0", [](PlanT &p) { p.arenas[kCache]->alignment = 0; }},
      {"holds 0 tokens", [](PlanT &p) { p.state->block_tokens = 0; }},
      {"state member is of kind 5", [](PlanT &p) { p.state->members[0]->kind = plan::StateKind(5); }},
      {"state latent of layer 2 is outside the plan's layers 0 to 2", [](PlanT &p) { p.state->members[0]->layer = 2; }},
      {"has 3 units, the group has 2 blocks", [](PlanT &p) { p.state->members[0]->units = 3; }},
      {"has 3 units, the group has 9 slots", [](PlanT &p) { p.state->slots = 9; }},
      {"names arena 4 of 4", [](PlanT &p) { p.state->members[0]->arena = 4; }},
      {"state latent of layer 0 is in arena 'weights' of kind weights, expected cache or state",
       [](PlanT &p) { p.state->members[0]->arena = kWeights; }},
      {"at offset 3000, but its arena has 4096 bytes", [](PlanT &p) { p.state->members[0]->offset = 3000; }},
      {"state conv of layer 1 has 3 units of 9223372036854775808",
       [](PlanT &p) { p.state->members[1]->unit_bytes = uint64_t(1) << 63; }},
      {"state latent of layer 0 has units of 1024 bytes, which do not hold 256 rows of 4 codes with their scales",
       [](PlanT &p) { p.state->members[0]->codes = 4; }},
      {"state conv of layer 1 has units of 512 bytes, which do not hold 256 rows of 1 codes",
       [](PlanT &p) { p.state->members[1]->codes = 1; }},
  });
}

TEST(PlanCheck, Code) {
  check({
      {"image 0 holds no code", [](PlanT &p) { p.images[0]->code.clear(); }},
      {"kernel 'test_add' has no symbol", [](PlanT &p) { p.kernels[1]->symbol.clear(); }},
      {"has no image", [](PlanT &p) { p.kernels[1]->images.clear(); }},
      {"is in image 1 of 1", [](PlanT &p) { p.kernels[1]->images = {0, 1}; }},
      {"kernel 'test_add' has an operand of type 9 with 1 columns",
       [](PlanT &p) {
         p.kernels[1]->operands.push_back(std::make_unique<plan::OperandT>());
         p.kernels[1]->operands[0]->dtype = plan::DType(9);
       }},
      {"has an operand of type 0 with 0 columns",
       [](PlanT &p) {
         p.kernels[1]->operands.push_back(std::make_unique<plan::OperandT>());
         p.kernels[1]->operands[0]->columns = 0;
       }},
      {"'launch of kernel 1': 2 arguments for kernel 'test_add', which has 1 operands",
       [](PlanT &p) { p.kernels[1]->operands.push_back(std::make_unique<plan::OperandT>()); }},
  });
}

TEST(PlanCheck, Entries) {
  check({
      {"two entries are named 'decode_b2'",
       [](PlanT &p) {
         PlanT other = sample_plan();
         p.entries.push_back(std::move(other.entries[0]));
       }},
      {"the entries of stage 1 are not those of stage 0",
       [](PlanT &p) {
         PlanT other = sample_plan();
         entry(other).name = "other", entry(other).stage = 1, entry(other).kind = plan::EntryKind::prefill;
         p.mesh->pp = 2, p.entries.push_back(std::move(other.entries[0]));
       }},
      {"is of kind 2", [](PlanT &p) { entry(p).kind = plan::EntryKind(2); }},
      {"has 0 rows", [](PlanT &p) { entry(p).rows = 0; }},
      {"5 segments", [](PlanT &p) { entry(p).segments = 5; }},
      {"5 logit rows", [](PlanT &p) { entry(p).logit_rows = 5; }},
      {"belongs to stage 1 of 1", [](PlanT &p) { entry(p).stage = 1; }},
      {"has 0 streams", [](PlanT &p) { entry(p).streams = 0; }},
      {"has 4000000000 events", [](PlanT &p) { entry(p).events = 4000000000u; }},
  });
}

TEST(PlanCheck, TensorMaps) {
  // A matrix of 4 x 8 values of fp32 in the second argument of the second launch, 128 bytes.
  const auto with = [](std::function<void(plan::LaunchT &, plan::TensorMapT &)> change) {
    return [change](PlanT &p) {
      plan::LaunchT &launch = test::launch(p, 4);
      auto map = std::make_unique<plan::TensorMapT>();
      map->arg = 1, map->columns = 8, map->rows = 4, map->row_bytes = 32, map->box_columns = map->box_rows = 4;
      launch.maps_at = 64;
      change(launch, *map);
      launch.maps.push_back(std::move(map));
    };
  };
  check({
      {"(accepted)", with([](plan::LaunchT &, plan::TensorMapT &) {})},
      {"a tensor map of argument 2 of 2", with([](plan::LaunchT &, plan::TensorMapT &m) { m.arg = 2; })},
      {"a tensor map without a type, rows or columns", with([](plan::LaunchT &, plan::TensorMapT &m) { m.box_rows = 0; })},
      {"a tensor map without a type, rows or columns",
       with([](plan::LaunchT &, plan::TensorMapT &m) { m.dtype = plan::DType(9); })},
      {"5 rows of 8 elements, 32 bytes apart, does not lie in argument 1 of 128 bytes",
       with([](plan::LaunchT &, plan::TensorMapT &m) { m.rows = 5; })},
      {"does not lie in argument 1", with([](plan::LaunchT &, plan::TensorMapT &m) { m.row_bytes = ~uint64_t(0); })},
      {"does not lie in argument 1", with([](plan::LaunchT &, plan::TensorMapT &m) { m.columns = ~uint64_t(0); })},
      {"tensor maps at byte 32", with([](plan::LaunchT &l, plan::TensorMapT &) { l.maps_at = 32; })},
      {"tensor maps at byte 0, expected a multiple of 64 behind 2 arguments",
       with([](plan::LaunchT &l, plan::TensorMapT &) { l.maps_at = 0; })},
  });
}

TEST(PlanCheck, Bindings) {
  check({
      {"lacks the input 'tokens', i32 [4]", [](PlanT &p) { remove_input(p, "tokens"); }},
      {"lacks the input 'counts', i32 [4]", [](PlanT &p) { remove_input(p, "counts"); }},
      {"lacks the input 'segments', i32 [2, 6]", [](PlanT &p) { remove_input(p, "segments"); }},
      {"lacks the input 'row_segment', i32 [4]", [](PlanT &p) { remove_input(p, "row_segment"); }},
      {"lacks the input 'block_table', i32 [2, 2]", [](PlanT &p) { remove_input(p, "block_table"); }},
      {"lacks the input 'logit_rows', i32 [2]", [](PlanT &p) { remove_input(p, "logit_rows"); }},
      {"lacks the input 'sampling', u8 [2, 24]", [](PlanT &p) { remove_input(p, "sampling"); }},
      {"lacks the output 'logits', f32 [2, 16]", [](PlanT &p) { entry(p).outputs.erase(entry(p).outputs.begin()); }},
      {"lacks the output 'sampled', i32 [2]", [](PlanT &p) { entry(p).outputs.pop_back(); }},
      {"lacks the input 'hidden', f32 [4, 16]", [](PlanT &p) { p.model->layer_begin = 1, p.state->members[0]->layer = 1; }},
      {"lacks the output 'hidden', f32 [4, 16]", [](PlanT &p) { p.model->layers = 3; }},
      {"the input 'tokens' is i32 [5], expected i32 [4]", [](PlanT &p) { input(p, "tokens").shape = {5}; }},
      {"the input 'tokens' is f32 [4], expected i32 [4]", [](PlanT &p) { input(p, "tokens").dtype = plan::DType::f32; }},
      {"the input 'segments' is i32 [12], expected i32 [2, 6]", [](PlanT &p) { input(p, "segments").shape = {12}; }},
      {"the input 'mask' is u8 [2, 15], expected u8 [2, 16]",
       [](PlanT &p) { entry(p).inputs.push_back(binding("mask", plan::DType::u8, {2, 15}, kIo, 0)); }},
      {"the input 'bank' is f32 [4, 16], expected f32 [any, 4, 16]",
       [](PlanT &p) { entry(p).inputs.push_back(binding("bank", plan::DType::f32, {4, 16}, kIo, 0)); }},
      {"is of type 9", [](PlanT &p) { input(p, "tokens").dtype = plan::DType(9); }},
      {"is in arena 77 of 4", [](PlanT &p) { input(p, "tokens").arena = 77; }},
      {"ends outside its arena of 1024 bytes", [](PlanT &p) { input(p, "tokens").offset = 1020; }},
      {"ends outside its arena", [](PlanT &p) { input(p, "tokens").shape = {uint64_t(1) << 62, 4}; }},
      {"two inputs are named 'tokens'",
       [](PlanT &p) { entry(p).inputs.push_back(binding("tokens", plan::DType::i32, {4}, kIo, 0)); }},
      {"input 'tokens' writes to the weights", [](PlanT &p) { input(p, "tokens").arena = kWeights; }},
      {"at most 64 are possible",
       [](PlanT &p) {
         for (int i = 0; i < 100; ++i)
           entry(p).inputs.push_back(binding("x" + std::to_string(i), plan::DType::u8, {1}, kIo, 0));
       }},
  });
}

// One that is right.
void add_note(PlanT &p) {
  p.notes.push_back(std::make_unique<plan::NoteT>());
  plan::NoteT &note = *p.notes.back();
  note.about = "kernel", note.choice = "a", note.reason = "the only one";
  note.candidates.push_back(std::make_unique<plan::CandidateT>());
  note.candidates[0]->choice = "a";
}

// The first kernel is one of so many arguments.
void operands(PlanT &p, int count) {
  for (int i = 0; i < count; ++i)
    p.kernels[0]->operands.push_back(std::make_unique<plan::OperandT>());
}

TEST(PlanCheck, Commands) {
  check({
      {"entry 'decode_b2', 'launch of kernel 0': kernel 3 of 3", [](PlanT &p) { launch(p, 0).kernel = 3; }},
      {"stream 2 of 2", [](PlanT &p) { launch(p, 0).stream = 2; }},
      {"grid [0, 1, 1]", [](PlanT &p) { launch(p, 0).grid_x = 0; }},
      {"block 0", [](PlanT &p) { launch(p, 0).block_x = 0; }},
      {"host launches have one dimension", [](PlanT &p) { launch(p, 0).grid_y = 2; }},
      {"argument 1 is in arena 4 of 4", [](PlanT &p) { launch(p, 0).args[1]->arena = 4; }},
      {"argument 3 has 769 bytes at offset 0 of arena 'activations', which has 768",
       [](PlanT &p) { launch(p, 0).args[3]->bytes = 769; }},
      {"argument 0 has 16 bytes at offset 18446744073709551608",
       [](PlanT &p) { launch(p, 0).args[0]->offset = ~uint64_t(0) - 7; }},
      {"argument 0 has access 3", [](PlanT &p) { launch(p, 0).args[0]->access = plan::Access(3); }},
      {"argument 2 writes to the weights", [](PlanT &p) { launch(p, 0).args[2]->access = plan::Access::update; }},
      {"arguments 2 and 3 are both written and on the same bytes of arena 'activations': 255 to 271 and 0 to 256",
       [](PlanT &p) { launch(p, 0).args[2] = slice(kActivations, 255, 16, plan::Access::update); }},
      {"4 arguments for kernel 'test_gather', which has 3 operands", [](PlanT &p) { operands(p, 3); }},
      {"4 arguments for kernel 'test_gather', which has 5 operands", [](PlanT &p) { operands(p, 5); }},
      {"a copy of 255 bytes to 256", [](PlanT &p) { entry(p).commands[1].AsCopy()->source->bytes = 255; }},
      {"destination 0 writes to the weights", [](PlanT &p) { entry(p).commands[1].AsCopy()->dest->arena = kWeights; }},
      {"event 1 of 1", [](PlanT &p) { entry(p).commands[2].AsRecord()->event = 1; }},
      {"event 7 of 1", [](PlanT &p) { entry(p).commands[3].AsWait()->event = 7; }},
      {"stream 5 of 2", [](PlanT &p) { entry(p).commands[3].AsWait()->stream = 5; }},
      {"a wait for event 0, which no earlier command records",
       [](PlanT &p) { entry(p).commands.erase(entry(p).commands.begin() + 2); }},
      {"65 elements of f32 do not fit a source of 256 bytes", [](PlanT &p) { entry(p).commands[5].AsCollective()->count = 65; }},
      {"elements of f32 do not fit", [](PlanT &p) { entry(p).commands[5].AsCollective()->count = uint64_t(1) << 62; }},
      {"that the schema does not have", [](PlanT &p) { entry(p).commands[5].AsCollective()->op = plan::CollectiveOp(8); }},
      {"'launch of kernel 0': note 0 of 0", [](PlanT &p) { launch(p, 0).notes = {0}; }},
      {"note 1 of 1", [](PlanT &p) { add_note(p), entry(p).commands[5].AsCollective()->notes = {0, 1}; }},
      {"entry 'decode_b2': note 7 of 1", [](PlanT &p) { add_note(p), entry(p).notes = {0, 7}; }},
      {"257 notes, at most 256", [](PlanT &p) { add_note(p), entry(p).notes.resize(257); }},
      {"note 0 chose 'b', which is none of its candidates", [](PlanT &p) { add_note(p), p.notes[0]->choice = "b"; }},
      {"note 0 has a candidate of 9223372036854775808 ns",
       [](PlanT &p) { add_note(p), p.notes[0]->candidates[0]->nanoseconds = uint64_t(1) << 63; }},
      {"source 0 has 769 bytes", [](PlanT &p) { entry(p).commands[5].AsCollective()->source->bytes = 769; }},
  });
}

// What a collective gives must fit its destination: here 256 bytes of a destination of 256.
TEST(PlanCheck, CollectiveDestinations) {
  using Op = plan::CollectiveOp;
  const auto with = [](Op op, uint32_t tp, uint64_t dest) {
    PlanT plan = sample_plan();
    plan.images[0]->code = {1}, plan.mesh->tp = tp, plan.arenas[kActivations]->bytes = 4096;
    plan::CollectiveT &c = *entry(plan).commands[5].AsCollective();
    c.op = op, c.dest->bytes = dest;
    return refusal(plan);
  };
  struct Shape {
    Op op;
    uint32_t tp;
    uint64_t needed;
  };
  for (const Shape &s : {Shape{Op::all_reduce, 1, 256},
                         {Op::all_reduce, 3, 256},
                         {Op::broadcast, 3, 256},
                         {Op::recv, 3, 256},
                         {Op::all_gather, 1, 256},
                         {Op::all_gather, 3, 768},
                         {Op::reduce_scatter, 1, 256},
                         {Op::reduce_scatter, 4, 64},
                         {Op::dispatch, 1, 256},
                         {Op::combine, 4, 256}}) {
    EXPECT_EQ(with(s.op, s.tp, s.needed), "(accepted)") << int(s.op);
    EXPECT_NE(with(s.op, s.tp, s.needed - 1).find(cat("gives ", s.needed, " bytes to a destination of ", s.needed - 1)),
              std::string::npos)
        << with(s.op, s.tp, s.needed - 1);
  }
  EXPECT_EQ(with(Op::send, 3, 1), "(accepted)");
  for (const Op op : {Op::reduce_scatter, Op::dispatch, Op::combine})
    EXPECT_NE(with(op, 3, 256).find("of 64 elements over 3 ranks of tp, which do not divide them"), std::string::npos) << int(op);
  const auto live = [](Op op, uint64_t bytes, uint64_t unit, uint64_t skip = 0) { // counts for four pieces
    PlanT plan = sample_plan();
    plan.images[0]->code = {1}, plan.mesh->tp = 4;
    plan::CollectiveT &c = *entry(plan).commands[5].AsCollective();
    c.op = op, c.live = std::make_unique<plan::SliceT>(*c.source), c.live->bytes = bytes, c.live->offset += skip,
    c.live_unit = unit;
    return refusal(plan);
  };
  EXPECT_EQ(live(Op::combine, 16, 1), "(accepted)");
  EXPECT_NE(live(Op::dispatch, 15, 1).find("for the pieces of 4 ranks, expected 16 bytes at an offset that is a multiple of 4"),
            std::string::npos);
  EXPECT_NE(live(Op::dispatch, 16, 1, 2).find("16 bytes of counts at offset "), std::string::npos);
  EXPECT_NE(live(Op::dispatch, 16, 0).find("a unit of 1 or more"), std::string::npos);
  EXPECT_NE(live(Op::dispatch, 1 << 20, 1).find("counts of live pieces 0 has 1048576 bytes"), std::string::npos);
  EXPECT_NE(live(Op::all_reduce, 16, 1).find("has counts of live pieces; dispatch and combine do"), std::string::npos);
  PlanT plan = sample_plan();
  plan.images[0]->code = {1}, plan.mesh->tp = 3;
  plan::CollectiveT &c = *entry(plan).commands[5].AsCollective();
  c.op = Op::recv, c.peer = 3;
  EXPECT_NE(refusal(plan).find("recv to rank 3 of axis tp, which has 3"), std::string::npos) << refusal(plan);
}

// The kernel of a collective by peer works on what the collective says, and on an area in an arena of kind shared.
TEST(PlanCheck, CollectivesByPeer) {
  using Change = std::function<void(PlanT &, plan::CollectiveT &)>;
  const auto with = [](const Change &change) {
    PlanT plan = sample_plan();
    plan.images[0]->code = {1}, plan.mesh->tp = 2;
    auto arena = std::make_unique<plan::ArenaT>();
    arena->name = "shared", arena->kind = plan::ArenaKind::shared, arena->bytes = 4096;
    plan.arenas.push_back(std::move(arena));
    plan::CollectiveT &c = *entry(plan).commands[5].AsCollective();
    c.transport = plan::Transport::peer, c.launch = std::make_unique<plan::LaunchT>();
    c.launch->kernel = 1, c.launch->stream = c.stream;
    for (const plan::SliceT *s : {c.source.get(), c.dest.get()})
      c.launch->args.push_back(std::make_unique<plan::SliceT>(*s));
    c.launch->args.push_back(slice(uint32_t(plan.arenas.size() - 1), 256, 1024, plan::Access::update));
    change(plan, c);
    return refusal(plan);
  };
  EXPECT_EQ(with([](PlanT &, plan::CollectiveT &) {}), "(accepted)");
  const auto says = [&](const char *part, const Change &change) {
    const std::string text = with(change);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says("a collective by peer without a launch", [](PlanT &, plan::CollectiveT &c) { c.launch.reset(); });
  says("a collective by library with a launch", [](PlanT &, plan::CollectiveT &c) { c.transport = plan::Transport::library; });
  says("kernel 9 of 3", [](PlanT &, plan::CollectiveT &c) { c.launch->kernel = 9; });
  says("works on other bytes", [](PlanT &, plan::CollectiveT &c) { c.launch->args[1]->offset -= 8; });
  says("works on other bytes", [](PlanT &, plan::CollectiveT &c) { c.launch->args.pop_back(); });
  says("or on another stream", [](PlanT &, plan::CollectiveT &c) { c.launch->stream = 0; });
  says("expected at most 16 ranks and", [](PlanT &, plan::CollectiveT &c) { c.launch->args[2]->bytes = 64; });
  says("1024 bytes at offset 260, expected at most 16 ranks and ",
       [](PlanT &, plan::CollectiveT &c) { c.launch->args[2]->offset = 260; });
  says("of an arena of kind shared", [](PlanT &plan, plan::CollectiveT &) { plan.arenas.back()->kind = plan::ArenaKind::io; });
  says("over 17 ranks", [](PlanT &plan, plan::CollectiveT &c) { plan.mesh->tp = plan.mesh->ep = 17, c.count = 51; });
  says("argument 2 has 1024 bytes at offset 4000", [](PlanT &, plan::CollectiveT &c) { c.launch->args[2]->offset = 4000; });
  // Nothing else lies where the peers' addresses are.
  const auto shared = [](PlanT &plan) { return uint32_t(plan.arenas.size() - 1); };
  says("argument 0 is in arena 'shared' of kind shared, in which only areas of collectives by peer lie",
       [&](PlanT &plan, plan::CollectiveT &) { entry(plan).commands[0].AsLaunch()->args[0]->arena = shared(plan); });
  says("destination 0 is in arena 'shared'", [&](PlanT &plan, plan::CollectiveT &c) { c.dest->arena = shared(plan); });
  says("is in an arena of kind shared", [&](PlanT &plan, plan::CollectiveT &) { entry(plan).inputs[0]->arena = shared(plan); });
  // A sum may go on with a row op: arguments between destination and area.
  const auto with_row = [&](const Change &change) {
    return with([&](PlanT &plan, plan::CollectiveT &c) {
      c.launch->args.insert(c.launch->args.begin() + 2, slice(0, 0, 4, plan::Access::read));
      change(plan, c);
    });
  };
  EXPECT_EQ(with_row([](PlanT &, plan::CollectiveT &) {}), "(accepted)");
  const auto row_says = [&](const char *part, const Change &change) {
    const std::string text = with_row(change);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  row_says("has 4 arguments, expected 3", [](PlanT &, plan::CollectiveT &c) { c.op = plan::CollectiveOp::broadcast; });
  row_says("over 1 ranks has 4 arguments", [](PlanT &plan, plan::CollectiveT &) { plan.mesh->tp = plan.mesh->ep = 1; });
  row_says("argument 2 is in arena 77", [](PlanT &, plan::CollectiveT &c) { c.launch->args[2]->arena = 77; });
  row_says("argument 2 is in arena 'shared'",
           [&](PlanT &plan, plan::CollectiveT &c) { c.launch->args[2]->arena = shared(plan); });
  row_says("argument 2 writes to the weights",
           [](PlanT &, plan::CollectiveT &c) { c.launch->args[2]->access = plan::Access::write; });
  row_says("of an arena of kind shared", [](PlanT &, plan::CollectiveT &c) { c.launch->args.pop_back(); });
}

// What tools print of a plan that nobody trusts yet.
TEST(PlanCheck, Texts) {
  const auto note = [](PlanT &p) -> plan::NoteT & {
    p.notes.push_back(std::make_unique<plan::NoteT>());
    return *p.notes.back();
  };
  check({
      {"the key's text 'test\\x1b[31m' has control characters", [](PlanT &p) { p.key->compiler += "\x1b[31m"; }},
      {"the key's text 'cpu\\n'", [](PlanT &p) { p.key->target += "\n"; }},
      {"the option 'a\\n'",
       [](PlanT &p) {
         p.key->options.push_back(std::make_unique<plan::OptionT>());
         p.key->options[0]->name = "mesh", p.key->options[0]->value = "a\n";
       }},
      {"the family", [](PlanT &p) { p.model->family += "\r"; }},
      {"the arena", [](PlanT &p) { p.arenas[1]->name += "\xe2\x80\xae"; }},
      {"the file",
       [](PlanT &p) {
         p.files.push_back(std::make_unique<plan::CheckpointFileT>());
         p.files.back()->name = "a\n";
       }},
      {"the image's target", [](PlanT &p) { p.images[0]->target += "\t"; }},
      {"the feature", [](PlanT &p) { p.images[0]->features.push_back("\x7f"); }},
      {"the kernel's text", [](PlanT &p) { p.kernels[2]->name += "\n"; }},
      {"the kernel's text", [](PlanT &p) { p.kernels[2]->symbol += "\n"; }},
      {"the kernel's text", [](PlanT &p) { p.kernels[2]->config += "\n"; }},
      {"the note", [=](PlanT &p) { note(p).about = "\n"; }},
      {"the note", [=](PlanT &p) { note(p).choice = "\n"; }},
      {"the note", [=](PlanT &p) { note(p).reason = "\n"; }},
      {"the candidate",
       [=](PlanT &p) {
         plan::NoteT &n = note(p);
         for (const char *choice : {"", "\n"}) {
           n.candidates.push_back(std::make_unique<plan::CandidateT>());
           n.candidates.back()->choice = choice;
         }
       }},
      {"the entry", [](PlanT &p) { entry(p).name += "\n"; }},
      {"the input or output 'x\\n'",
       [](PlanT &p) {
         auto more = std::make_unique<plan::BindingT>(*entry(p).outputs[0]);
         more->name = "x\n";
         entry(p).outputs.push_back(std::move(more));
       }},
      {"the label 'launch of kernel 0\\x1b'", [](PlanT &p) { launch(p, 0).label += "\x1b"; }},
      {"the label '\\x1b'", [](PlanT &p) { entry(p).commands[1].AsCopy()->label = "\x1b"; }},
      {"the label '\\x1b'", [](PlanT &p) { entry(p).commands[5].AsCollective()->label = "\x1b"; }},
  });
  const std::string bytes = flatbuffer(sample_plan());
  const auto result = check::text(*plan::GetPlan(bytes.data()), 20); // strings over each other would take time without end
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("strings have more bytes than its file"), std::string::npos) << result.error().message;
}

// A command kind that this runtime does not know, as a newer compiler could write it.
TEST(PlanCheck, UnknownCommandKind) {
  std::string bytes = flatbuffer(sample_plan());
  const plan::Plan *plan = plan::GetPlan(bytes.data());
  const auto *types = plan->entries()->Get(0)->commands_type();
  const_cast<uint8_t *>(types->Data())[2] = 6;
  std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size() + 32]);
  const std::string whole = seal(std::as_bytes(std::span(bytes)));
  memcpy(copy.get(), whole.data(), whole.size());
  auto result = verify_plan({copy.get(), whole.size()});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("a command of kind 6, the last kind is 5"), std::string::npos) << result.error().message;
}

} // namespace
} // namespace k31::test
