#include "codegen/Target.h"
#include "test/codegen/compile.h"
#include <gtest/gtest.h>

namespace k31::test {

TEST(Target, LevelsMeanWhatTheCompilerMeansByThem) {
  llvm::ArrayRef<HostLevel> levels = llvm::cantFail(Target::find("cpu"))->hostLevels();
  ASSERT_EQ(levels.size(), 2u);
  __builtin_cpu_init();
  EXPECT_EQ(runsHere(levels[0]), static_cast<bool>(__builtin_cpu_supports("x86-64-v4")));
  EXPECT_EQ(runsHere(levels[1]), static_cast<bool>(__builtin_cpu_supports("x86-64-v3")));
}

TEST(Target, CudaHasNoHostImages) {
  EXPECT_TRUE(llvm::cantFail(Target::find("sm_90a"))->isCuda());
  EXPECT_TRUE(llvm::cantFail(Target::find("sm_90a"))->hostLevels().empty());
  EXPECT_FALSE(llvm::cantFail(Target::find("cpu"))->isCuda());
}

TEST(Target, RefusesWhatItCannotDo) {
  EXPECT_EQ(llvm::toString(Target::find("tpu").takeError()), "target 'tpu' is unknown; targets are cpu and sm_90a");
}

} // namespace k31::test
