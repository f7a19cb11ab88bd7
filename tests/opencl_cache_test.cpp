// The cache on disk: what is in it comes back, and it does not grow without end.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "backends/opencl/cache.h"
#include "temp_folder.h"

namespace stoker::opencl {
namespace {

class OpenClCache : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* old = std::getenv("STOKER_CACHE_DIR")) old_ = old;
    ::setenv("STOKER_CACHE_DIR", folder_.path().c_str(), 1);
  }
  void TearDown() override { ::setenv("STOKER_CACHE_DIR", old_.c_str(), 1); }

  static void put(const Cache& cache, const std::string& key, int hours_ago) {
    EXPECT_EQ(cache.store(key, std::vector<std::byte>(1000)), "");
    std::filesystem::last_write_time(cache.path_of(key),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  static bool has(const Cache& cache, const std::string& key) { return std::filesystem::exists(cache.path_of(key)); }

  stoker::testing::TempFolder folder_;
  std::string old_;
};

TEST_F(OpenClCache, WhatWasNotUsedForTheLongestTimeGoesFirst) {
  const Cache cache("programs");
  put(cache, "a", 4);
  put(cache, "b", 3);
  put(cache, "c", 2);
  put(cache, "d", 1);
  const std::uintmax_t size = std::filesystem::file_size(cache.path_of("a"));
  cache.trim(4 * size);
  for (const char* key : {"a", "b", "c", "d"}) EXPECT_TRUE(has(cache, key)) << key;
  EXPECT_TRUE(cache.load("a").has_value());  // used now
  cache.trim(3 * size - 1);
  EXPECT_TRUE(has(cache, "a"));
  EXPECT_FALSE(has(cache, "b"));
  EXPECT_FALSE(has(cache, "c"));
  EXPECT_TRUE(has(cache, "d"));
  cache.trim(0);
  EXPECT_TRUE(std::filesystem::is_empty(cache.path_of("a").parent_path()));
}

TEST_F(OpenClCache, TemporaryFilesOfRunsThatWereKilledGoToo) {
  const Cache cache("programs");
  put(cache, "a", 1);
  const std::filesystem::path left = folder_.write("programs/x.bin.tmp1", std::string(5000, 'x'));
  std::filesystem::last_write_time(left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(48));
  cache.trim(2000);
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(has(cache, "a"));
}

TEST_F(OpenClCache, NothingIsTrimmedWhereThereIsNothing) {
  Cache("no such folder").trim(0);
  ::setenv("STOKER_CACHE_DIR", folder_.write("occupied", "a file where a folder should be").c_str(), 1);
  Cache("programs").trim(0);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "occupied"));
}

}  // namespace
}  // namespace stoker::opencl
