// The 2022 study, run again on this device, with the cures beside it: a list of measurements that can stop between any
// two of them, and the report of what was done.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profile/report.h"
#include "study/results.h"

namespace stoker {

struct StudyOptions {
  std::string device = "opencl";
  bool quick = false;
  bool self_test = true;
  int threads = 0;
  std::function<void(const std::string& what, int done, int total)> progress;  // before each measurement
  std::function<bool()> stop;  // asked often; true ends the study with what was done
  std::function<void(const std::string&)> note;
  std::function<void(const StudyResults&)> measured;  // after each measurement: what there is so far
};

// What cannot be measured (a model that does not fit) is listed in the results. An Error only if nothing can be.
[[nodiscard]] StudyResults run_study(const StudyOptions& options);

// The report without its phones.
[[nodiscard]] Report to_report(const StudyResults& results);

// Section 5 in words, a paragraph or a list each, computed from the figures; "not measured" where there are none.
[[nodiscard]] std::vector<std::string> verdict(const StudyResults& results);

}  // namespace stoker
