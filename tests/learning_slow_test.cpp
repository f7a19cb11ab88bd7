// LeNet-5 learns: the built-in digits within 3 epochs, MNIST within 10.
#include <gtest/gtest.h>

#include <filesystem>

#include "stoker/stoker.hpp"

namespace stoker {
namespace {

#ifndef STOKER_TEST_DIR
#define STOKER_TEST_DIR "tests"
#endif

double best_test_accuracy(const FitReport& report) {
  double best = 0;
  for (const EpochReport& epoch : report.epochs) best = std::max(best, epoch.test_accuracy);
  return best;
}

TEST(Learning, LeNetReadsTheBuiltInDigits) {
  Network net(Model::named("lenet5"), {.optimizer = "adam", .lr = 1e-3});
  EXPECT_GE(best_test_accuracy(net.fit(Data::open("digits"), {.epochs = 3})), 0.98);
}

TEST(Learning, LeNetReadsMnist) {
  const std::filesystem::path folder = std::filesystem::path(STOKER_TEST_DIR) / "../../shared/data/mnist10k";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there: MNIST is not tested";
  const Data data = Data::open(folder.string());
  ASSERT_EQ(data.train_items(), 8000);
  ASSERT_EQ(data.test_items(), 2000);
  Network net(Model::named("lenet5"), {.optimizer = "adam", .lr = 1e-3});
  // Stops as soon as it is good enough.
  FitOptions options{.epochs = 10};
  options.on_epoch = [&options](const EpochReport& report) {
    if (report.test_accuracy >= 0.97) options.cancel.cancel();
  };
  EXPECT_GE(best_test_accuracy(net.fit(data, options)), 0.97);
}

}  // namespace
}  // namespace stoker
