#include "codegen/Target.h"
#include "test/codegen/compile.h"
#include <gtest/gtest.h>

namespace k31::test {

TEST(Target, LevelsMeanWhatTheCompilerMeansByThem) {
  llvm::ArrayRef<HostLevel> levels = llvm::cantFail(Target::find("cpu"))->hostLevels();
  ASSERT_EQ(levels.size(), 4u);
  __builtin_cpu_init();
  const bool bf16 = __builtin_cpu_supports("avx512bf16");
  EXPECT_EQ(runsHere(levels[1]), __builtin_cpu_supports("x86-64-v4") && bf16);
  EXPECT_EQ(runsHere(levels[2]), static_cast<bool>(__builtin_cpu_supports("x86-64-v4")));
  EXPECT_EQ(runsHere(levels[3]), static_cast<bool>(__builtin_cpu_supports("x86-64-v3")));
  if (runsHere(levels[0])) // the system may keep the registers of AMX from a processor that has them
    EXPECT_TRUE(__builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("amx-tile") && bf16);
}

TEST(Target, ALaterLevelNeedsNothingThatAnEarlierOneDoesNot) { // the runtime takes the first that the processor has
  llvm::ArrayRef<HostLevel> levels = llvm::cantFail(Target::find("cpu"))->hostLevels();
  for (size_t i = 1; i < levels.size(); ++i)
    for (llvm::StringRef feature : levels[i].required)
      EXPECT_TRUE(llvm::is_contained(levels[i - 1].required, feature)) << levels[i].name.str() << " " << feature.str();
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
