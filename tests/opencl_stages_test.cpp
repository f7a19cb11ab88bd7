// Stages merged into launches: order kept where places overlap, few launches where they do not, tables as documented.
#include <gtest/gtest.h>

#include "backends/opencl/single.h"
#include "backends/opencl/stages.h"

namespace stoker::opencl {
namespace {

Place arena(std::int64_t offset, std::int64_t bytes = 64) {
  return {.kind = Place::Kind::arena, .offset = offset, .bytes = bytes};
}

Device gpu() {
  Device device;
  device.family = Family::mali;
  return device;
}

Stage stage(const Place& from, const Place& to, std::int64_t items = 16, const std::string& code = "body") {
  return {.code = code,
          .args = {Arg::tensor(from), Arg::tensor(to), Arg::integer(7), Arg::real(1.0F)},
          .written = {false, true, false, false},
          .items = items};
}

StepWork work(int step, Stage item) { return {.step = step, .work = std::move(item)}; }

StepWork launch(int step, std::vector<Place> reads, std::vector<Place> writes) {
  return {.step = step, .work = Launch{.kernel = "large"}, .reads = std::move(reads), .writes = std::move(writes)};
}

std::vector<MergedLaunch> merged(std::vector<StepWork> list) {
  return merge_stages(std::move(list), gpu(),
                      [](const Place& place) { return static_cast<int>(place.offset / 100000); });
}

bool is_chain(const MergedLaunch& merged) { return merged.launch.program.defines.at(1).second == 1; }
const Table& table_of(const MergedLaunch& merged) { return *merged.launch.args.at(0).words; }

TEST(Stages, that_do_not_need_each_other_run_side_by_side) {
  const auto launches = merged({work(0, stage(arena(0), arena(128))), work(1, stage(arena(0), arena(256), 5000))});
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_FALSE(is_chain(launches[0]));
  EXPECT_EQ(launches[0].steps, (std::vector{0, 1}));
  // One group for the first, and as many as 5000 items need for the second.
  const std::size_t local = launches[0].launch.local[0];
  EXPECT_GT(launches[0].launch.global[0], 2 * local);
  EXPECT_EQ(launches[0].launch.global[0] % local, 0U);
}

TEST(Stages, that_need_each_other_are_a_chain_with_a_barrier) {
  const auto launches = merged({work(0, stage(arena(0), arena(128))), work(1, stage(arena(128), arena(256)))});
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_TRUE(is_chain(launches[0]));
  EXPECT_EQ(launches[0].launch.global, launches[0].launch.local);
  const std::vector<std::int32_t>& words = table_of(launches[0]).words;
  const auto first = static_cast<std::size_t>(words[0]);
  const auto second = static_cast<std::size_t>(words[first + 1]);
  EXPECT_GT(second, first);
  EXPECT_EQ(words[first + 2], 1) << "no barrier between the two";
  EXPECT_EQ(words[second + 1], 0) << "the last stage has no next one";
}

TEST(Stages, keep_order_when_one_overwrites_what_another_reads) {
  const auto launches = merged({work(0, stage(arena(0), arena(128))), work(1, stage(arena(256), arena(32)))});
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_TRUE(is_chain(launches[0])) << "bytes 32..63 are read by the first and written by the second";
}

TEST(Stages, of_large_levels_are_launches_of_their_own) {
  const auto launches = merged({work(0, stage(arena(0), arena(128))), work(1, stage(arena(128), arena(256), 100000)),
                                work(2, stage(arena(256), arena(384))), work(3, stage(arena(384), arena(512)))});
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_FALSE(is_chain(launches[0]));
  EXPECT_FALSE(is_chain(launches[1]));
  EXPECT_TRUE(is_chain(launches[2]));
}

TEST(Stages, wait_until_a_launch_needs_them) {
  const auto launches = merged({work(0, stage(arena(0), arena(128))), launch(1, {arena(0)}, {arena(512)}),
                                work(2, stage(arena(512), arena(640))), launch(3, {arena(640)}, {arena(768)})});
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_EQ(launches[0].launch.kernel, "large");
  EXPECT_EQ(launches[1].steps, (std::vector{0, 2}));
  EXPECT_EQ(launches[2].steps, (std::vector{3}));
}

TEST(Stages, run_before_a_launch_that_overwrites_what_they_read) {
  const auto launches = merged({work(0, stage(arena(0), arena(128))), launch(1, {}, {arena(0)})});
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches[0].steps, (std::vector{0}));
}

TEST(Stages, of_equal_code_are_one_function_whatever_their_order_and_sizes) {
  const auto one =
      merged({work(0, stage(arena(0), arena(128), 16, "a")), work(1, stage(arena(0), arena(256), 16, "b"))});
  const auto two = merged({work(0, stage(arena(0), arena(512), 32, "b")), work(1, stage(arena(0), arena(128), 16, "a")),
                           work(2, stage(arena(0), arena(640), 48, "a"))});
  EXPECT_EQ(one[0].launch.program, two[0].launch.program);
}

TEST(Stages, find_their_arguments_in_the_table) {
  const auto launches = merged({work(0, stage(arena(100000), arena(200000)))});
  const Table& table = table_of(launches[0]);
  const auto at = static_cast<std::size_t>(table.words[0]);
  EXPECT_EQ(table.words[at + 5], 0) << "the first buffer";
  EXPECT_EQ(table.words[at + 7], 1) << "the second buffer";
  EXPECT_EQ(table.words[at + 9], 7);
  EXPECT_EQ(table.words[at + 11], 0x3F800000);
  ASSERT_EQ(table.patches.size(), 2U);
  EXPECT_EQ(table.patches[1].word, static_cast<int>(at) + 8);
  EXPECT_EQ(table.patches[1].place, arena(200000));
  EXPECT_EQ(launches[0].launch.args.size(), 3U);
  EXPECT_EQ(launches[0].launch.args[2].place, arena(200000));
}

TEST(Stages, with_more_buffers_than_a_launch_takes_are_several_launches) {
  std::vector<StepWork> list;
  for (int i = 0; i < 6; ++i) list.push_back(work(i, stage(arena(200000 * i), arena(200000 * i + 100000))));
  const auto launches = merged(std::move(list));
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches[0].steps.size() + launches[1].steps.size(), 6U);
}

TEST(Stages, that_are_large_are_launches_with_parameters) {
  const Launch large = single_launch(stage(arena(0), arena(64), 1000), gpu());
  EXPECT_EQ(large.args.size(), 4U);
  EXPECT_EQ(large.global[0], 1024U);
  EXPECT_NE(large.program.header.find("int single_2, float single_3"), std::string::npos);
  EXPECT_TRUE(std::holds_alternative<Stage>(stage_or_launch(stage(arena(0), arena(64)), kSmallElements, gpu())));
  EXPECT_TRUE(std::holds_alternative<Launch>(stage_or_launch(stage(arena(0), arena(64)), kSmallElements + 1, gpu())));
}

}  // namespace
}  // namespace stoker::opencl
