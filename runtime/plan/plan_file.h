// A plan file: read, verified from the trailer inwards, and read-only afterwards. Needs no device. The one check of
// plans: the compiler's readers of plan files call it too.
#pragma once
#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/result.h"
#include "runtime/schema/plan_generated.h"
#include <memory>
#include <string>

namespace k31 {

class PlanFile {
public:
  // Trailer, FlatBuffer structure, version, then every index and range: after this, nothing in the plan needs a check again.
  static Result<PlanFile> open(const std::string &path);

  const plan::Plan &plan() const { return *root; }
  Digest hash() const; // of the FlatBuffer, as the trailer has it

private:
  PlanFile(FileBytes file, const plan::Plan *root) : file(std::move(file)), root(root) {}
  FileBytes file;
  const plan::Plan *root;
};

// The same checks on bytes in memory, which must be aligned to 8; the plan points into them.
Result<const plan::Plan *> verify_plan(std::span<const std::byte> file);

// The same for a FlatBuffer without trailer.
Result<const plan::Plan *> check_plan(std::span<const std::byte> flatbuffer);

} // namespace k31
