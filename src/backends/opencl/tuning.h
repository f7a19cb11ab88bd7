// Tuning: which parameters (tiles, vector width, work-group, image or buffer) a kernel family uses on a device. Seeds
// from seeds.cpp, results of `stoker tune`, and the families that a self-test has put into quarantine.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/opencl/device.h"

namespace stoker::opencl {

// Parameters by name, in the order of the family's defines: {{"TM", 4}, {"TN", 8}, {"IMAGE", 1}}.
using Params = std::vector<std::pair<std::string, int>>;

[[nodiscard]] int param(const Params& params, std::string_view name);  // a missing name is our own mistake
[[nodiscard]] std::string to_string(const Params& params);             // "TM=4 TN=8 IMAGE=1"

// Whether both have the same names in the same order.
[[nodiscard]] bool has_names_of(const Params& params, const Params& other);

// A seed: what a family starts with on a kind of device, and where that comes from.
struct Seed {
  const char* kernel;  // the family: "gemm", "conv2d", "depthwise", ...
  Family device;       // Family::other is the default for devices without a row
  Params params;
  const char* source;
  int width = 0;  // only where a native register holds at least so many floats; the widest row that fits is taken
};
[[nodiscard]] std::span<const Seed> all_seeds();
// The row for a device; none: the family has no parameters there.
[[nodiscard]] const Seed* find_seed(std::string_view kernel, const Device& device);
// What `stoker tune` tries for a family on a device, the seed first.
[[nodiscard]] std::vector<Params> candidates(std::string_view kernel, const Device& device);

using TuningKey = std::pair<std::string, std::string>;  // kernel family, problem

class Tuning {
 public:
  explicit Tuning(const Device& device) : device_(&device) {}

  // The parameters for a problem of the family. `problem` is a class of shapes in words ("NT 64x512x512"), the key of
  // tuned entries; without one what is set for "" (all problems), or the seed of the device's family; in quarantine an
  // empty list, which means the plain kernel.
  [[nodiscard]] const Params& params(std::string_view kernel, std::string_view problem) const;
  [[nodiscard]] bool is_plain(std::string_view kernel) const { return quarantine_.contains(kernel); }

  void set(std::string_view kernel, std::string_view problem, Params params);
  void reset(std::string_view kernel, std::string_view problem);  // to what it would be without set()
  void quarantine(std::string_view kernel) { quarantine_.emplace(kernel); }
  void release(std::string_view kernel) { quarantine_.erase(std::string(kernel)); }
  [[nodiscard]] const std::map<TuningKey, Params, std::less<>>& tuned() const { return tuned_; }
  // Everything asked for from now on is added to `asked`; null: no longer.
  void record(std::set<TuningKey>* asked) { asked_ = asked; }
  // Part of Backend::numerics_key: what decides the bits.
  [[nodiscard]] std::string key() const;

 private:
  const Device* device_;
  std::map<TuningKey, Params, std::less<>> tuned_;
  std::set<std::string, std::less<>> quarantine_;
  std::set<TuningKey>* asked_ = nullptr;
};

}  // namespace stoker::opencl
