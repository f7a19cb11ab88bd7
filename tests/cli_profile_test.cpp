// stoker profile as a user meets it: the tables, the files that it writes, bad input, Ctrl-C.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"

namespace stoker::testing {
namespace {

class CliProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_command()) GTEST_SKIP() << "STOKER_COMMAND is not set: the program is not tested";
  }
  [[nodiscard]] Finished call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "profile");
    return run(arguments, folder_.path());
  }

  TempFolder folder_;
};

TEST_F(CliProfile, TellsOfAStepAndWritesTraceAndReport) {
  const Finished result = call({"mlp", "--device", "cpu", "--batch", "4", "--steps", "3", "--threads", "1",
                                "--no-roofline", "--trace", "trace.json", "--report", "report.html"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"compute", "data movement", "waiting for the queue", "launch overhead", "host work", "rest",
                           "matmul", "backward", "The arena is", "trace.json", "report.html"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
  EXPECT_TRUE(nlohmann::json::parse(read_text(folder_ / "trace.json"))["traceEvents"].is_array());
  const std::string page = read_text(folder_ / "report.html");
  for (const char* id : {"breakdown", "roofline", "ops", "kernels", "memory", "movement"})
    EXPECT_NE(page.find("id=\"" + std::string(id) + "\""), std::string::npos) << id;
}

TEST_F(CliProfile, GivesJsonCsvAndMarkdown) {
  const std::vector<std::string> common{"--layers",  "8,4,3", "--device", "cpu", "--batch",      "2",
                                        "--threads", "1",     "--steps",  "2",   "--no-roofline"};
  const auto with = [&](const char* format) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), {"-o", format});
    return call(arguments);
  };
  const nlohmann::json json = nlohmann::json::parse(with("json").out);
  EXPECT_EQ(json["sections"].size(), 6U);
  EXPECT_EQ(with("csv").out.rfind("op,phase,calls", 0), 0U);
  EXPECT_NE(with("md").out.find("| class"), std::string::npos);
}

TEST_F(CliProfile, AnswersBadInputWithOneLineThatListsWhatThereIs) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"alexnet", "--device", "cpu"}, "mobilenetv2-32"},
      {{"mlp", "--device", "toaster"}, "cpu"},
      {{"mlp", "--device", "opencl:99"}, "opencl"},
      {{"--device", "cpu"}, "--layers"},
      {{"mlp", "--device", "cpu", "--trace", "no/such/folder/trace.json"}, "no/such/folder"}};
  for (const auto& [arguments, part] : cases) {
    const Finished result = call(arguments);
    EXPECT_EQ(result.status, 1) << part << ": " << result.err;
    EXPECT_EQ(result.err.rfind("stoker: error: ", 0), 0U) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << part << ": " << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
  EXPECT_EQ(call({"mlp", "-o", "xml"}).status, 2);
  const Finished help = call({"--help"});
  EXPECT_NE(help.out.find("stoker profile lenet5", help.out.rfind("Example")), std::string::npos);
}

TEST_F(CliProfile, LeavesNoFileBehindThatItDidNotWrite) {
  EXPECT_EQ(call({"alexnet", "--device", "cpu", "--trace", "trace.json", "--report", "report.html"}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "trace.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "report.html"));
  std::filesystem::create_directory(folder_ / "folder");
  const Finished result = call({"mlp", "--device", "cpu", "--steps", "1000000", "--report", "folder"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("folder: Is a directory"), std::string::npos) << result.err;
}

TEST_F(CliProfile, FailsWhereItsOutputCannotBeWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const std::string command = std::getenv("STOKER_COMMAND");
  const std::string errors = (folder_ / "stderr.txt").string();
  EXPECT_NE(std::system((command + " models > /dev/full 2> " + errors).c_str()), 0);
  EXPECT_EQ(read_text(errors).rfind("stoker: error: cannot write", 0), 0U) << read_text(errors);
}

TEST_F(CliProfile, CtrlCEndsItWithWhatWasDone) {
  const Child child({"profile", "lenet5", "--device", "cpu", "--steps", "1000000", "--no-roofline", "--threads", "1"},
                    folder_.path());
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  child.send(SIGINT);
  const Finished result = child.wait();
  EXPECT_EQ(result.status, 130) << result.err;
  EXPECT_TRUE(result.out.find("host work") != std::string::npos || result.err.find("stopped") != std::string::npos)
      << result.out << result.err;
}

}  // namespace
}  // namespace stoker::testing
