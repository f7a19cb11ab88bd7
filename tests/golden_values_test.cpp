// The formula for golden inputs and weights is the one that made the goldens.
#include "golden_values.h"

#include <gtest/gtest.h>

namespace stoker::test {
namespace {

// The expected values are those stored as initial/NAME in tests/goldens/mlp_sgd.safetensors.
TEST(GoldenValues, AreThoseOfTheScriptThatMadeTheGoldens) {
  const std::vector<float> weight = golden_values("fc1.weight", 3, 1.0F / 28.0F);
  EXPECT_FLOAT_EQ(weight[0], 0.03479038F);
  EXPECT_FLOAT_EQ(weight[1], -0.03484001F);
  EXPECT_FLOAT_EQ(weight[2], -0.03042442F);
  const std::vector<float> bias = golden_values("fc2.bias", 3, 1.0F / 16.0F);
  EXPECT_FLOAT_EQ(bias[0], -0.05899662F);
  EXPECT_FLOAT_EQ(bias[2], 0.05604772F);
}

}  // namespace
}  // namespace stoker::test
