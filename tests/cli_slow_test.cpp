// Every --help ends with a command that works as typed: this types them.
#include <gtest/gtest.h>

#include "command.h"

namespace stoker::testing {
namespace {

// The words of the last line.
std::vector<std::string> example_of(const std::string& help) {
  const std::size_t end = help.find_last_not_of(" \n");
  const std::size_t begin = help.rfind('\n', end) + 1;
  std::istringstream line(help.substr(begin, end + 1 - begin));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

TEST(CliExamples, WorkAsTyped) {
  if (!has_command()) GTEST_SKIP() << "STOKER_COMMAND is not set: the program is not tested";
  const TempFolder folder;
  // In this order: eval and predict read what train writes.
  for (const char* command : {"train", "eval", "predict", "bench", "plan", "devices", "models"}) {
    std::vector<std::string> words = example_of(run({command, "--help"}, folder.path()).out);
    ASSERT_GE(words.size(), 2U) << command;
    EXPECT_EQ(words[0], "stoker");
    EXPECT_EQ(words[1], command);
    words.erase(words.begin());
    const Finished result = run(words, folder.path());
    EXPECT_EQ(result.status, 0) << command << ": " << result.err;
    EXPECT_FALSE(result.out.empty()) << command;
  }
}

}  // namespace
}  // namespace stoker::testing
