// The command line as a user meets it: help, bad input, tables, training, stopping and resuming.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "cli_fixture.h"

namespace stoker::testing {
namespace {

// A training so small that it takes a moment, yet has many places to stop at.
std::vector<std::string> small_training(const std::string& file) {
  return {"train", "--layers",  "784,16,10", "--data",       "digits", "--items",      "160",    "--epochs",
          "3",     "--batch",   "8",         "--optimizer",  "adam",   "--schedule",   "cosine", "--warmup",
          "4",     "--augment", "shift:2",   "--accumulate", "2",      "--save-every", "2",      "--threads",
          "1",     "--seed",    "5",         "--save",       file};
}

TEST_F(Cli, EveryHelpEndsWithAnExample) {
  for (const char* command : {"train", "eval", "predict", "bench", "plan", "devices", "models", "check", "tune"}) {
    const Finished help = call({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    const std::size_t example = help.out.rfind("Example");
    ASSERT_NE(example, std::string::npos) << command;
    EXPECT_NE(help.out.find(std::string("stoker ") + command, example), std::string::npos) << command;
  }
  EXPECT_NE(call({"--help"}).out.find("Example"), std::string::npos);
  EXPECT_EQ(call({"--version"}).status, 0);
}

TEST_F(Cli, AnswersWrongUseWithOneLineAndStatusTwo) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"dance"},
                                                    {"train", "mlp", "--epochs", "many"},
                                                    {"train", "mlp", "--no-such-flag"},
                                                    {"bench", "-o", "xml"},
                                                    {"check", "all"},
                                                    {"tune", "mlp", "--seconds", "-1"},
                                                    {"predict", "mlp"}}) {
    const Finished result = call(arguments);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
    EXPECT_EQ(result.err.rfind("stoker: error: ", 0), 0U) << result.err;
  }
}

TEST_F(Cli, AnswersBadInputWithOneLineAndStatusOne) {
  std::ofstream(folder_ / "bad.safetensors") << "this is no such file";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"train", "alexnet"}, "lenet5"},
      {{"train"}, "--layers"},
      {{"train", "mlp", "--layers", "784,10"}, "not both"},
      {{"train", "mlp", "--data", "no/such/folder"}, "no/such/folder"},
      {{"train", "mlp", "--optimizer", "lion"}, "rmsprop"},
      {{"train", "mlp", "--schedule", "linear"}, "cosine"},
      {{"train", "mlp", "--lr", "inf"}, "lr"},
      {{"train", "mlp", "--epochs", "0"}, "epochs"},
      {{"train", "mlp", "--batch", "-3"}, "batch"},
      {{"train", "mlp", "--augment", "spin"}, "spin"},
      {{"train", "mlp", "--freeze", "layer9"}, "layer9"},
      {{"train", "mlp", "--device", "toaster"}, "cpu"},
      {{"train", "mlp", "--device", "opencl:99"}, "opencl"},
      {{"train", "mlp", "--resume", "absent.safetensors"}, "absent.safetensors"},
      {{"train", "mlp", "--init", "bad.safetensors"}, "bad.safetensors"},
      {{"train", "mlp", "--init", "bad.safetensors", "--resume", "bad.safetensors"}, "not both"},
      {{"train", "resnet18-32", "--data", "digits", "--items", "10"}, "32"},
      {{"train", "--layers", "784,5", "--data", "digits", "--items", "10"}, "classes"},
      {{"eval", "mlp", "--init", "absent.safetensors"}, "absent.safetensors"},
      {{"check", "--device", "cpu"}, "opencl:N"},
      {{"check", "--device", "opencl:99"}, "opencl"},
      {{"tune", "alexnet"}, "lenet5"},
      {{"tune", "mlp", "--device", "cpu"}, "opencl:N"},
      {{"bench", "--models", "alexnet"}, "mobilenetv2-32"},
      {{"bench", "--models", "mlp", "--devices", "toaster"}, "cpu"},
      {{"plan", "mlp", "--pass-off", "no-such-pass"}, "no-such-pass"}};
  for (const auto& [arguments, part] : cases) {
    const Finished result = call(arguments);
    EXPECT_EQ(result.status, 1) << part << ": " << result.err;
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
    EXPECT_EQ(result.err.rfind("stoker: error: ", 0), 0U) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << part << ": " << result.err;
  }
}

TEST_F(Cli, BenchPrintsTheRowsOfItsSchema) {
  const Finished result = call({"bench", "--models", "mlp,lenet5", "--devices", "cpu", "--batch", "4", "--threads", "1",
                                "--steps", "3", "-o", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["model"], "mlp");
  EXPECT_EQ(rows[0]["params"], 235920);
  EXPECT_EQ(rows[1]["model"], "lenet5");
  EXPECT_EQ(rows[1]["params"], 431080);
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row["device"], "cpu");
    EXPECT_EQ(row["batch"], 4);
    EXPECT_EQ(row["threads"], 1);
    for (const char* part : {"median", "min", "p90"}) EXPECT_GT(row["step_ms"][part].get<double>(), 0) << part;
    EXPECT_LE(row["step_ms"]["min"], row["step_ms"]["median"]);
    EXPECT_LE(row["step_ms"]["median"], row["step_ms"]["p90"]);
    for (const char* key : {"items_per_s", "gflops", "peak_bytes", "setup_ms"}) {
      EXPECT_GT(row[key].get<double>(), 0) << key;
    }
    for (const char* key : {"host_bytes_per_step", "blocking_calls_per_step", "launches_per_step",
                            "objects_created_per_step", "movement_share"}) {
      EXPECT_EQ(row[key].get<double>(), 0) << key;
    }
  }
}

TEST_F(Cli, BenchPrintsTables) {
  const auto bench = [&](const char* format) {
    return call({"bench", "--models", "mlp", "--batch", "4", "--steps", "1", "-o", format}).out;
  };
  EXPECT_EQ(bench("md").rfind("| model", 0), 0U);
  EXPECT_EQ(bench("csv").rfind("model,device,batch,threads,params,", 0), 0U);
  EXPECT_EQ(bench("table").rfind("model", 0), 0U);
}

TEST_F(Cli, ListsModelsAndDevices) {
  const std::string models = call({"models"}).out;
  for (const char* part : {"mlp", "431,080", "2,236,682", "11,173,962", "28x28x1"}) {
    EXPECT_NE(models.find(part), std::string::npos) << part;
  }
  EXPECT_NE(call({"devices"}).out.find("cpu"), std::string::npos);
}

TEST_F(Cli, WorksWithoutOpenClAndSaysWhatWasTried) {
  const WithVariable library("STOKER_OPENCL_LIBRARY", "/no/such/libOpenCL.so");
  const Finished devices = call({"devices"});
  EXPECT_EQ(devices.status, 0) << devices.err;
  EXPECT_NE(devices.out.find("cpu"), std::string::npos);
  EXPECT_NE(devices.out.find("/no/such/libOpenCL.so"), std::string::npos) << devices.out;
  const Finished trained = call({"train", "lenet5", "--items", "20", "--epochs", "1"});
  EXPECT_EQ(trained.status, 0) << trained.err;
  const Finished refused = call({"train", "lenet5", "--items", "20", "--epochs", "1", "--device", "opencl"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("/no/such/libOpenCL.so"), std::string::npos) << refused.err;
}

TEST_F(Cli, HelpSaysThatTheDeviceIsChosenByItself) {
  for (const char* command : {"train", "eval", "predict", "plan"}) {
    const std::string help = call({command, "--help"}).out;
    EXPECT_NE(help.find("--device TEXT=auto "), std::string::npos) << help;
  }
  EXPECT_NE(call({"bench", "--help"}).out.find("auto (the fastest"), std::string::npos);
}

TEST_F(Cli, AutoSaysInOneLineWhatItChose) {
  const WithVariable cache("STOKER_CACHE_DIR", folder_.path().string());
  const Finished trained = call({"train", "--layers", "784,16,10", "--items", "20", "--epochs", "1"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(trained.out.rfind("device: cpu (auto: ", 0), 0U) << trained.out;
  const Finished named = call({"train", "--layers", "784,16,10", "--items", "20", "--epochs", "1", "--device", "cpu"});
  EXPECT_EQ(named.out.find("auto"), std::string::npos) << named.out;
}

TEST_F(Cli, PlanPrintsTableGraphAndPicture) {
  const Finished plan = call({"plan", "lenet5", "--batch", "2", "--svg", "plan.svg"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_NE(plan.out.find("conv2d"), std::string::npos);
  EXPECT_NE(read_text(folder_ / "plan.svg").find("<svg"), std::string::npos);
  const std::string before = call({"plan", "lenet5", "--batch", "2", "--graph", "before"}).out;
  const std::string after = call({"plan", "lenet5", "--batch", "2", "--graph", "after"}).out;
  EXPECT_NE(before.find("relu"), std::string::npos);
  EXPECT_LT(after.size(), before.size());
  EXPECT_LT(call({"plan", "lenet5", "--batch", "2", "--infer"}).out.size(), plan.out.size());
}

TEST_F(Cli, TrainsEvaluatesAndPredicts) {
  const Finished trained = call({"train", "--layers", "784,32,10", "--data", "digits", "--items", "500", "--epochs",
                                 "6", "--lr", "0.003", "--save", "net.safetensors"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(trained.out.find('\r'), std::string::npos) << "a bar where output is no terminal";
  EXPECT_NE(trained.out.find("epoch 6/6"), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("peak memory"), std::string::npos) << trained.out;
  EXPECT_TRUE(trained.err.empty()) << trained.err;

  const Finished evaluated = call({"eval", "--init", "net.safetensors", "--data", "digits", "--items", "500"});
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  const std::size_t test = trained.out.rfind("test accuracy ");
  ASSERT_NE(test, std::string::npos);
  const std::string accuracy = trained.out.substr(test + 5, std::string("accuracy 98.00 %").size());
  EXPECT_NE(evaluated.out.find(accuracy), std::string::npos) << accuracy << " / " << evaluated.out;

  const Finished predicted = call({"predict", "--layers", "784,32,10", "--init", "net.safetensors", "--count", "4"});
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 4);
  EXPECT_NE(predicted.out.find("item 3: class "), std::string::npos);
}

TEST_F(Cli, InitListsWhatIsMissingExtraAndOfTheWrongShape) {
  ASSERT_EQ(
      call({"train", "--layers", "784,32,10", "--items", "20", "--epochs", "1", "--save", "a.safetensors"}).status, 0);
  const Finished result =
      call({"train", "--layers", "784,32,16,10", "--items", "20", "--epochs", "1", "--init", "a.safetensors"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("loaded 2 tensors"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("missing"), std::string::npos);
  EXPECT_NE(result.out.find("4.weight"), std::string::npos);
  EXPECT_NE(result.out.find("2.weight is [10,32] and should be [16,32]"), std::string::npos) << result.out;
}

TEST_F(Cli, ResumesToTheSameBitsAfterKills) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(call(small_training("straight.safetensors")).status, 0);
  const auto takes = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  const std::string expected = read_text(folder_ / "straight.safetensors");
  ASSERT_FALSE(expected.empty());

  std::mt19937 random(std::random_device{}());
  const auto file = folder_ / "killed.safetensors";
  int kills = 0;
  for (int run_number = 0; run_number < 60; ++run_number) {
    const std::vector<std::string> arguments =
        std::filesystem::exists(file)
            ? std::vector<std::string>{"train", "--resume", "killed.safetensors", "--save-every", "2"}
            : small_training("killed.safetensors");
    const Child child(arguments, folder_.path());
    // The first runs are killed; after those the training may finish.
    if (run_number < 12) {
      std::this_thread::sleep_for(takes * static_cast<int>(random() % 100) / 100);
      child.send(SIGKILL);
    }
    const Finished finished = child.wait();
    if (finished.status == 128 + SIGKILL) {
      ++kills;
      continue;
    }
    ASSERT_EQ(finished.status, 0) << finished.err;
    if (kills > 0) break;
    std::filesystem::remove(file);  // done before the first kill: once more from the beginning
  }
  EXPECT_GT(kills, 0);
  // The file that flags were kept in is the same, byte for byte: weights, moments, counters and position.
  EXPECT_TRUE(read_text(file) == expected) << "after " << kills << " kills the final checkpoint differs";
}

TEST_F(Cli, AnInterruptSavesAndSaysHowToResume) {
  std::vector<std::string> arguments = small_training("stopped.safetensors");
  *std::ranges::find(arguments, "3") = "100000";
  const Child child(arguments, folder_.path());
  while (child.out().find("epoch 2/") == std::string::npos) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  child.send(SIGINT);
  const Finished finished = child.wait();
  EXPECT_EQ(finished.status, 130) << finished.err;
  EXPECT_NE(finished.out.find("stoker train --resume stopped.safetensors"), std::string::npos) << finished.out;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "stopped.safetensors"));
}

TEST_F(Cli, ALossThatIsNotFiniteLeavesTheLastGoodCheckpoint) {
  // The first step makes weights so large that the second one overflows.
  std::ofstream csv(folder_ / "huge.csv");
  csv << "label,x,y\n";
  for (int i = 0; i < 20; ++i) csv << i % 2 << ",1e30,-1e30\n";
  csv.close();
  const Finished first = call({"train", "--layers", "2,2", "--data", "huge.csv", "--epochs", "1", "--optimizer", "sgd",
                               "--save", "good.safetensors"});
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string good = read_text(folder_ / "good.safetensors");
  ASSERT_FALSE(good.empty());
  const Finished second = call({"train", "--resume", "good.safetensors", "--epochs", "5"});
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.err.find("not finite"), std::string::npos) << second.err;
  EXPECT_TRUE(is_one_line(second.err)) << second.err;
  EXPECT_TRUE(read_text(folder_ / "good.safetensors") == good);
}

}  // namespace
}  // namespace stoker::testing
