// The ceilings of every device at hand, and their store. Times are not asserted: only what any device must show.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/backend.h"
#include "base/error.h"
#include "command.h"
#include "devices.h"
#include "profile/known_ceilings.h"

namespace stoker {
namespace {

class EveryDevice : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryDevice, HasCeilingsThatAreNumbers) {
  const auto backend = make_backend(GetParam(), {.self_test = false});
  const Ceilings ceilings = backend->measure_ceilings();
  EXPECT_GT(ceilings.flops, 0);
  EXPECT_GT(ceilings.bandwidth, 0);
  for (const double value :
       {ceilings.flops, ceilings.bandwidth, ceilings.to_device, ceilings.to_host, ceilings.map_seconds,
        ceilings.launch_seconds, ceilings.sync_seconds, ceilings.read_seconds, ceilings.write_seconds}) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_GE(value, 0);
  }
  if (GetParam() == "cpu") return;  // nothing crosses
  for (const double value :
       {ceilings.to_device, ceilings.to_host, ceilings.map_seconds, ceilings.read_seconds, ceilings.write_seconds})
    EXPECT_GT(value, 0);
}

INSTANTIATE_TEST_SUITE_P(Ceilings, EveryDevice, ::testing::ValuesIn(testing::device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

// Measures what it was told to, and counts.
class Counting : public Backend {
 public:
  Counting(std::string driver, double flops) : driver_(std::move(driver)), flops_(flops) {}
  [[nodiscard]] DeviceInfo describe() const override { return {"x", "X", driver_}; }
  [[nodiscard]] Ceilings measure_ceilings() override {
    ++measured;
    return {.flops = flops_, .bandwidth = 2e9, .launch_seconds = 3e-6};
  }
  [[nodiscard]] const Target& target() const override { fail(Code::unsupported, "target"); }
  [[nodiscard]] std::string numerics_key() const override { return {}; }
  [[nodiscard]] std::unique_ptr<Memory> allocate(std::int64_t, MemoryKind) override { return nullptr; }
  void upload(Memory&, std::int64_t, std::span<const std::byte>) override {}
  void download(const Memory&, std::int64_t, std::span<std::byte>) override {}
  void copy(const Memory&, std::int64_t, Memory&, std::int64_t, std::int64_t) override {}
  [[nodiscard]] std::span<std::byte> map(Memory&) override { return {}; }
  void unmap(Memory&) override {}
  [[nodiscard]] std::unique_ptr<Executable> compile(const Plan&, const Bindings&) override { return nullptr; }

  int measured = 0;

 private:
  std::string driver_;
  double flops_;
};

class KnownCeilings : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ::setenv("STOKER_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("STOKER_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / "stoker_ceilings_test";
};

TEST_F(KnownCeilings, AreMeasuredOnceADeviceAndDriver) {
  Counting first("driver 1", 5e9);
  EXPECT_EQ(known_or_measured(first).flops, 5e9);
  Counting same("driver 1", 6e9);
  const Ceilings known = known_or_measured(same);
  EXPECT_EQ(same.measured, 0);
  EXPECT_EQ(known.flops, 5e9);
  EXPECT_EQ(known.bandwidth, 2e9);
  EXPECT_EQ(known.launch_seconds, 3e-6);
  Counting other("driver 2", 7e9);
  EXPECT_EQ(known_or_measured(other).flops, 7e9);
}

TEST_F(KnownCeilings, AreTheBestOfWhatWasMeasured) {
  Counting first("driver 1", 5e9);
  static_cast<void>(known_or_measured(first));
  Counting again("driver 1", 6e9);
  EXPECT_EQ(known_or_measured(again, Measure::again).flops, 6e9);
  Counting later("driver 1", 4e9);
  EXPECT_EQ(known_or_measured(later, Measure::again).flops, 6e9);
  EXPECT_EQ(later.measured, 1);
}

TEST_F(KnownCeilings, OfADeviceThatDidNothingAreNotKept) {
  Counting virtual_phone("driver 1", 0);
  static_cast<void>(known_or_measured(virtual_phone));
  static_cast<void>(known_or_measured(virtual_phone));
  EXPECT_EQ(virtual_phone.measured, 2);
}

TEST_F(KnownCeilings, AreMeasuredAgainWhereTheFileIsDamaged) {
  Counting first("driver 1", 5e9);
  static_cast<void>(known_or_measured(first));
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder_)) {
      if (!file.is_regular_file()) continue;
      std::string text = testing::read_text(file.path());
      ASSERT_NE(text.find(from), std::string::npos) << text;
      std::ofstream(file.path()) << text.replace(text.find(from), from.size(), to);
    }
  };
  int measured = 1;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"bandwidth\"", "\"width\""}, {"5000000000.0", "0"}, {"2000000000.0", "-1"}, {"}", ""}}) {
    replace(from, to);
    const Ceilings ceilings = known_or_measured(first);
    EXPECT_EQ(ceilings.flops, 5e9) << to;
    EXPECT_EQ(ceilings.bandwidth, 2e9) << to;
    EXPECT_EQ(first.measured, ++measured) << to;
  }
}

TEST(NullDevice, SaysThatItHasNoMicroBenchmarks) {
  class Plain : public Counting {
   public:
    Plain() : Counting("", 0) {}
    [[nodiscard]] Ceilings measure_ceilings() override { return Backend::measure_ceilings(); }
  };
  Plain plain;
  EXPECT_THROW(static_cast<void>(plain.measure_ceilings()), Error);
}

}  // namespace
}  // namespace stoker
