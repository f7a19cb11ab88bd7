// The hot loops that predictions for phones rest on are those of docs/phone-kernels.md, which tools/phones/table
// writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>

#include "study/phones.h"

namespace stoker {
namespace {

const char* file_of(WorkKind kind) {
  switch (kind) {
    case WorkKind::matmul: return "gemm_direct.cl";
    case WorkKind::conv:
    case WorkKind::conv_input_grad: return "conv2d_tile.cl";
    case WorkKind::conv_weight_grad: return "conv2d_weight_tile.cl";
    case WorkKind::depthwise: return "depthwise_rows.cl";
    default: return "";
  }
}

// Multiply-adds an instruction of each variant's hot loop, from the smallest, by GPU and kernel file.
using Documented = std::map<std::pair<std::string, std::string>, std::vector<double>>;

Documented read_document() {
  std::ifstream document(STOKER_TEST_DIR "/../docs/phone-kernels.md");
  EXPECT_TRUE(document.is_open());
  Documented shares;
  std::string file;
  const std::regex heading("^## (\\S+\\.cl): .*");
  const std::regex row("^\\| (\\S+) \\|.*, loop ([0-9]+): ([0-9]+) m, .*");
  std::smatch found;
  for (std::string line; std::getline(document, line);) {
    if (std::regex_match(line, found, heading)) file = found[1];
    if (std::regex_match(line, found, row))
      shares[{found[1], file}].push_back(std::stod(found[3]) / std::stod(found[2]));
  }
  for (auto& [key, values] : shares) std::ranges::sort(values);
  return shares;
}

double two_digits(double share) { return std::round(share * 100) / 100; }

TEST(HotLoops, AreThoseOfTheDocument) {
  const Documented documented = read_document();
  for (const HotLoop& row : hot_loops()) {
    const auto at = documented.find({row.gpu, file_of(row.kind)});
    ASSERT_NE(at, documented.end()) << "docs/phone-kernels.md has no loops of " << file_of(row.kind) << " on "
                                    << row.gpu;
    const std::vector<double>& shares = at->second;
    char expected[64];
    std::snprintf(expected, sizeof expected, "%.2f, %.2f", shares[shares.size() / 2], shares.back());
    EXPECT_DOUBLE_EQ(row.middle, two_digits(shares[shares.size() / 2]))
        << "kHotLoops: " << row.gpu << " " << to_string(row.kind) << ": the document gives " << expected;
    EXPECT_DOUBLE_EQ(row.best, two_digits(shares.back()))
        << "kHotLoops: " << row.gpu << " " << to_string(row.kind) << ": the document gives " << expected;
  }
}

}  // namespace
}  // namespace stoker
