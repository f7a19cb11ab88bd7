// The fixture of tests that call the program, in a folder of their own, and what they ask of its output.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "command.h"

namespace stoker::testing {

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_command()) GTEST_SKIP() << "STOKER_COMMAND is not set: the program is not tested";
  }
  [[nodiscard]] Finished call(const std::vector<std::string>& arguments) const {
    return run(arguments, folder_.path());
  }

  TempFolder folder_;
};

inline bool is_one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

// Runs with a variable of the environment set, and removes it afterwards.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~WithVariable() {
    if (before_.empty()) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, before_.c_str(), 1);
    }
  }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

}  // namespace stoker::testing
