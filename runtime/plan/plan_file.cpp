#include "runtime/plan/plan_file.h"
#include "runtime/base/cat.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/plan/check.h"

namespace k31 {

// A full plan holds about a million tables (a launch and its slices count apart), nested four deep.
static constexpr flatbuffers::uoffset_t kMaxDepth = 16, kMaxTables = 1u << 24;

Result<const plan::Plan *> check_plan(std::span<const std::byte> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 8 != 0)
    return fail(Code::internal, "the plan's bytes in memory are not aligned to 8");
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return fail(Code::unsupported,
                cat("the plan has ", bytes.size(), " bytes, a FlatBuffer less than 2 GiB; compile it with less code in it"));
  const auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  if (bytes.size() < 8 || !plan::PlanBufferHasIdentifier(data))
    return fail(Code::invalid_input, "the file identifier is not K31P: not a plan; name a file that k31c made");
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxDepth, kMaxTables);
  if (!plan::VerifyPlanBuffer(verifier))
    return fail(Code::invalid_input, "the plan's tables point outside the file or lack a required field; compile the plan again");
  const plan::Plan *plan = plan::GetPlan(data);
  if (plan->major() != kPlanMajor || plan->minor() > kPlanMinor)
    return fail(Code::unsupported,
                cat("the plan has format ", plan->major(), ".", plan->minor(), ", this program reads ", kPlanMajor, ".0 to ",
                    kPlanMajor, ".", kPlanMinor,
                    "; compile the plan with the k31c of this release, or use the runtime that belongs to it"));
  K31_TRY(check::model(*plan));
  K31_TRY(check::memory(*plan));
  K31_TRY(check::weights(*plan));
  K31_TRY(check::code(*plan));
  K31_TRY(check::entries(*plan));
  K31_TRY(check::text(*plan, bytes.size()));
  return plan;
}

Result<const plan::Plan *> verify_plan(std::span<const std::byte> file) {
  K31_ASSIGN(const std::span<const std::byte> flatbuffer, unseal(file));
  return check_plan(flatbuffer);
}

Digest PlanFile::hash() const { return plan_hash(file.bytes()); }

Result<PlanFile> PlanFile::open(const std::string &path) {
  {
    K31_ASSIGN(const File opened, File::open(path));
    if (auto marked = check_trailer(opened); !marked) // before all of a large file that is no plan is read
      return context(path, std::move(marked.error()));
  }
  K31_ASSIGN(FileBytes file, FileBytes::read(path, FLATBUFFERS_MAX_BUFFER_SIZE + kPlanTrailerBytes));
  auto plan = verify_plan(file.bytes());
  if (!plan)
    return context(path, std::move(plan.error()));
  return PlanFile(std::move(file), *plan);
}

} // namespace k31
