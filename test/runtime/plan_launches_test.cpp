#include "runtime/schema/launches.h"
#include <gtest/gtest.h>

namespace k31::plan {

TEST(OutputLabel, OfALaunchAndOfTheProductsThatWereMerged) {
  EXPECT_EQ(output_label("layers.5.self_attn.kda", 0), "layers.5.self_attn.kda");
  EXPECT_EQ(output_label("layers.5.self_attn.kda", 1), "layers.5.self_attn.kda");
  EXPECT_EQ(output_label("lm_head", 0), "lm_head");
  EXPECT_EQ(output_label("", 0), "");
  const char *merged = "layers.12.self_attn.qkv_proj+self_attn.f_a_proj+self_attn.g_proj";
  EXPECT_EQ(output_label(merged, 0), "layers.12.self_attn.qkv_proj");
  EXPECT_EQ(output_label(merged, 1), "layers.12.self_attn.f_a_proj");
  EXPECT_EQ(output_label(merged, 2), "layers.12.self_attn.g_proj");
  EXPECT_EQ(output_label("a+b", 1), "b");
}

} // namespace k31::plan
