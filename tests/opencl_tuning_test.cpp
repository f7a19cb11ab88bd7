// Tuning: seeds by family and register width, what was tuned before them, quarantine before all; the tuner's
// candidates.
#include <gtest/gtest.h>

#include <set>

#include "backends/opencl/devices.h"
#include "backends/opencl/tuning.h"

namespace stoker::opencl {
namespace {

Device device_of(Family family, int native_width = 4) {
  Device device;
  device.family = family;
  device.native_width = native_width;
  device.image_texels = 1 << 20;
  return device;
}

TEST(OpenClTuning, the_widest_seed_that_fits_the_registers_is_taken) {
  EXPECT_EQ(param(find_seed("gemm", device_of(Family::cpu, 16))->params, "V"), 16);
  EXPECT_EQ(param(find_seed("gemm", device_of(Family::cpu, 8))->params, "V"), 8);
  EXPECT_EQ(param(find_seed("gemm", device_of(Family::cpu, 4))->params, "V"), 4);
}

TEST(OpenClTuning, an_unknown_gpu_gets_the_default_and_a_cpu_never_does) {
  const Seed* other = find_seed("gemm", device_of(Family::other));
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->device, Family::other);
  EXPECT_EQ(find_seed("gemm", device_of(Family::mali))->device, Family::mali);
  for (const Seed& seed : all_seeds()) {
    const Seed* found = find_seed(seed.kernel, device_of(Family::cpu, 16));
    if (found != nullptr) {
      EXPECT_EQ(found->device, Family::cpu) << seed.kernel;
    }
  }
  EXPECT_EQ(find_seed("no such family", device_of(Family::cpu)), nullptr);
}

TEST(OpenClTuning, a_problem_goes_before_the_family_and_quarantine_before_both) {
  const Device device = device_of(Family::mali);
  Tuning tuning(device);
  EXPECT_EQ(tuning.params("gemm", "NN 64x64x64"), find_seed("gemm", device)->params);
  const Params all = {{"TM", 1}};
  const Params one = {{"TM", 2}};
  tuning.set("gemm", "", all);
  tuning.set("gemm", "NN 64x64x64", one);
  EXPECT_EQ(tuning.params("gemm", "NN 64x64x64"), one);
  EXPECT_EQ(tuning.params("gemm", "NT 64x64x64"), all);
  tuning.quarantine("gemm");
  EXPECT_TRUE(tuning.params("gemm", "NN 64x64x64").empty());
  EXPECT_TRUE(tuning.is_plain("gemm"));
}

TEST(OpenClTuning, the_key_changes_with_whatever_decides_the_bits) {
  const Device device = device_of(Family::cpu, 16);
  Tuning tuning(device);
  std::set<std::string> keys = {tuning.key()};
  tuning.set("gemm", "NN 64x64x64", {{"V", 8}});
  EXPECT_TRUE(keys.insert(tuning.key()).second);
  tuning.set("gemm", "NN 64x64x64", {{"V", 4}});
  EXPECT_TRUE(keys.insert(tuning.key()).second);
  tuning.quarantine("conv2d");
  EXPECT_TRUE(keys.insert(tuning.key()).second);
}

TEST(OpenClTuning, candidates_begin_with_the_seed_and_name_what_it_names) {
  for (const Family family : {Family::cpu, Family::adreno, Family::mali, Family::powervr, Family::other}) {
    const Device device = device_of(family, family == Family::cpu ? 16 : 4);
    const std::vector<Params> list = candidates("gemm", device);
    ASSERT_GT(list.size(), 1U);
    EXPECT_EQ(list[0], find_seed("gemm", device)->params);
    for (const Params& params : list) {
      ASSERT_EQ(params.size(), list[0].size());
      for (std::size_t i = 0; i < params.size(); ++i) EXPECT_EQ(params[i].first, list[0][i].first);
    }
  }
}

TEST(OpenClTuning, a_device_is_described_with_its_way_of_replay_and_its_use_of_images) {
  const auto says = [](const Device& device, const char* part) {
    return describe(device).details.find(part) != std::string::npos;
  };
  Device device = device_of(Family::adreno);
  EXPECT_TRUE(says(device, "no replay: launch by launch, images")) << describe(device).details;
  EXPECT_FALSE(says(device, "unused"));
  device.recordable_queues = true;
  EXPECT_TRUE(says(device, "replays recordable queues"));
  device.command_buffers = true;
  EXPECT_TRUE(says(device, "replays command buffers"));
  device.quirks.no_command_buffers = true;
  EXPECT_TRUE(says(device, "replays recordable queues"));
  device.image_texels = 0;
  EXPECT_TRUE(says(device, "no images"));
  EXPECT_TRUE(says(device_of(Family::mali), "images unused"));
}

}  // namespace
}  // namespace stoker::opencl
