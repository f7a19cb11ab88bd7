// Checkpoints: PyTorch's layouts, files that are damaged or of another kind, a disk that is full.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "command.h"
#include "devices.h"
#include "formats/safetensors.h"
#include "stoker/stoker.hpp"

namespace stoker {
namespace {

using testing::read_text;
using testing::TempFolder;

Model conv_model() {
  return Model::custom("conv", {4, 4, 2}, 3, [](Builder& net, Tensor x) {
    x = net.batch_norm(net.conv2d(x, "conv", 5, {.kernel = 3}), "bn");
    return net.linear(flatten(x), "fc", 3);
  });
}

// The error that `action` throws; a test failure if it throws none.
template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {Code::io, ""};
}

bool says(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

TEST(Checkpoint, StoresPyTorchsNamesAndLayouts) {
  const TempFolder folder;
  const auto path = folder / "net.safetensors";
  Network net(conv_model(), {.momentum = 0.9});
  const std::vector<float> items(2 * 32, 0.5F);
  net.train_step(items, std::vector<std::int32_t>{0, 2});
  net.save(path, {{"hello", "world"}});

  const SafetensorsFile file = SafetensorsFile::open(path);
  EXPECT_EQ(file.at("conv.weight").shape, (Shape{5, 2, 3, 3}));
  EXPECT_EQ(file.at("optimizer.momentum_buffer.conv.weight").shape, (Shape{5, 2, 3, 3}));
  EXPECT_EQ(file.at("fc.weight").shape, (Shape{3, 20}));
  EXPECT_EQ(file.at("bn.num_batches_tracked").type, StoredType::i64);
  EXPECT_EQ(file.at("bn.num_batches_tracked").shape.rank(), 0);
  EXPECT_EQ(file.read_i64("bn.num_batches_tracked"), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(file.read_i64("optimizer.step"), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(file.read_f32("conv.weight"), net.parameter("conv.weight"));

  const CheckpointInfo info = read_checkpoint_info(path);
  EXPECT_EQ(info.model, "conv");
  EXPECT_EQ(info.step, 1);
  EXPECT_EQ(info.seed, 1U);
  EXPECT_EQ(info.notes.at("hello"), "world");
  EXPECT_NE(info.optimizer.find("\"momentum\":0.9"), std::string::npos) << info.optimizer;
  EXPECT_FALSE(info.schedule.empty());
  EXPECT_EQ(info.numerics, net.numerics());
  EXPECT_EQ(info.device, "cpu");
}

// The checkpoint at `path` as if it came from another device.
void write_as_of(const std::string& device, const std::filesystem::path& path, const std::filesystem::path& to) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  Metadata metadata = file.metadata();
  metadata["stoker.device"] = device;
  std::vector<TensorToStore> tensors;
  for (const StoredTensor& stored : file.tensors()) {
    tensors.push_back({.name = stored.name, .type = stored.type, .shape = stored.shape});
    tensors.back().values = [&file, &stored](const WritePart& write) {
      if (stored.type == StoredType::i64) {
        const std::vector<std::int64_t> values = file.read_i64(stored.name);
        write(std::as_bytes(std::span(values)));
      } else {
        const std::vector<float> values = file.read_f32(stored.name);
        write(std::as_bytes(std::span(values)));
      }
    };
  }
  write_safetensors(to, tensors, metadata);
}

TEST(Checkpoint, ResumeNeverChangesTheDeviceUnasked) {
  const TempFolder folder;
  Network net(Model::layers({4, 3}), {.device = "cpu"});
  net.save(folder / "cpu");
  write_as_of("opencl:0 Adreno (TM) 9000", folder / "cpu", folder / "adreno");
  EXPECT_EQ(device_of(read_checkpoint_info(folder / "cpu")), "cpu");
  EXPECT_EQ(read_checkpoint_info(folder / "adreno").device, "opencl:0 Adreno (TM) 9000");

  Network undecided(Model::layers({4, 3}));
  const Error error = error_of([&] { undecided.resume(folder / "adreno"); });
  EXPECT_EQ(error.code(), Code::device);
  EXPECT_TRUE(says(error, "Adreno (TM) 9000")) << error.what();
  EXPECT_TRUE(says(error, "--device")) << error.what();
  // Asked for, it goes on elsewhere.
  net.resume(folder / "adreno");
}

TEST(Checkpoint, ANetworkWithoutADeviceOfItsOwnMovesToTheCheckpoints) {
  const std::vector<std::string> devices = testing::opencl_ids();
  if (devices.empty()) GTEST_SKIP() << "there is no OpenCL device";
  const TempFolder folder;
  Network net(Model::layers({4, 3}), {.device = devices.back(), .self_test = false});
  net.save(folder / "net");
  const CheckpointInfo info = read_checkpoint_info(folder / "net");
  EXPECT_EQ(info.device.rfind(devices.back() + " ", 0), 0U) << info.device;
  EXPECT_EQ(device_of(info), devices.back());

  Network undecided(Model::layers({4, 3}), {.self_test = false});
  EXPECT_EQ(undecided.device().id, "cpu");
  undecided.resume(folder / "net");
  EXPECT_EQ(undecided.device().id, devices.back());
  EXPECT_EQ(undecided.parameter("0.weight"), net.parameter("0.weight"));
}

TEST(Checkpoint, ADeviceThatStandsElsewhereInTheListIsFoundByItsName) {
  const std::vector<std::string> devices = testing::opencl_ids();
  if (devices.empty()) GTEST_SKIP() << "there is no OpenCL device";
  const TempFolder folder;
  Network net(Model::layers({4, 3}), {.device = devices.back(), .self_test = false});
  EXPECT_EQ(device_of({.device = "opencl:77 " + net.device().name}), devices.back());
}

TEST(Checkpoint, AWeightSetInPyTorchsLayoutComputesAsInPyTorch) {
  // A single tap: output channel 4 is input channel 1 shifted by (row 2, column 0).
  Network net(Model::custom("tap", {4, 4, 2}, 20, [](Builder& b, Tensor x) {
    return flatten(b.conv2d(x, "conv", 5, {.kernel = 3, .bias = false}));
  }));
  std::vector<float> weight(5 * 2 * 3 * 3, 0.0F);
  weight[((4 * 2 + 1) * 3 + 2) * 3 + 0] = 1;
  net.set_parameter("conv.weight", weight);
  EXPECT_EQ(net.parameter("conv.weight"), weight);
  std::vector<float> item(32);
  for (std::size_t i = 0; i < item.size(); ++i) item[i] = static_cast<float>(i);
  const std::vector<float> y = net.predict(item);  // [5, 2, 2], channel outermost
  for (std::size_t i = 0; i < 20; ++i) {
    const std::size_t row = i % 4 / 2;
    const std::size_t column = i % 2;
    const float expected = i < 16 ? 0 : item[((row + 2) * 4 + column) * 2 + 1];
    EXPECT_EQ(y[i], expected) << i;
  }
}

TEST(Checkpoint, LoadsIntoANetworkOfAnotherSeed) {
  const TempFolder folder;
  const auto path = folder / "net.safetensors";
  Network net(conv_model(), {.seed = 1});
  net.save(path);
  Network other(conv_model(), {.optimizer = "adam", .seed = 2});
  EXPECT_NE(other.parameter("fc.weight"), net.parameter("fc.weight"));
  other.load(path);
  EXPECT_EQ(other.parameter("fc.weight"), net.parameter("fc.weight"));
  EXPECT_EQ(other.parameter("conv.weight"), net.parameter("conv.weight"));
}

TEST(Checkpoint, ResumeRefusesAnotherModelOptimizerOrSeed) {
  const TempFolder folder;
  const auto path = folder / "net.safetensors";
  Network(Model::layers({4, 3}), {.momentum = 0.9, .seed = 3}).save(path);
  Network other_model(Model::layers({4, 4, 3}), {.momentum = 0.9, .seed = 3});
  EXPECT_TRUE(says(error_of([&] { other_model.resume(path); }), "layers-4,3"));
  Network other_optimizer(Model::layers({4, 3}), {.optimizer = "adam", .seed = 3});
  EXPECT_TRUE(says(error_of([&] { other_optimizer.resume(path); }), "optimizer"));
  Network other_seed(Model::layers({4, 3}), {.momentum = 0.9, .seed = 4});
  EXPECT_TRUE(says(error_of([&] { other_seed.resume(path); }), "seed 3"));
}

TEST(Checkpoint, ATruncatedFileIsNamedAndChangesNothing) {
  const TempFolder folder;
  const auto path = folder / "net.safetensors";
  Network net(Model::layers({4, 3}));
  net.save(path);
  const std::string whole = read_text(path);
  const auto cut = folder / "cut.safetensors";
  const std::vector<float> before = net.parameter("0.weight");
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{40}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(cut, std::ios::binary) << whole.substr(0, size);
    const Error error = error_of([&] { net.resume(cut); });
    EXPECT_EQ(error.code(), Code::bad_file) << size;
    EXPECT_TRUE(says(error, "cut.safetensors")) << error.what();
    EXPECT_EQ(error_of([&] { static_cast<void>(net.init_from(cut)); }).code(), Code::bad_file);
  }
  EXPECT_EQ(net.parameter("0.weight"), before);
}

TEST(Checkpoint, AForeignFileIsAnError) {
  const TempFolder folder;
  std::ofstream(folder / "notes.txt") << "Dear diary, today I trained nothing at all and it went rather well.";
  Network net(Model::layers({4, 3}));
  EXPECT_EQ(error_of([&] { net.resume(folder / "notes.txt"); }).code(), Code::bad_file);
  EXPECT_EQ(error_of([&] { net.load(folder / "absent"); }).code(), Code::io);

  // Weights of somebody else's: no position to resume at, but they can be loaded.
  const std::vector<float> weight(12, 0.25F);
  const std::vector<float> bias(3, 0.5F);
  const std::vector<TensorToStore> tensors{stored_f32("0.weight", {3, 4}, weight), stored_f32("0.bias", {3}, bias)};
  const auto path = folder / "foreign.safetensors";
  write_safetensors(path, tensors);
  EXPECT_TRUE(says(error_of([&] { net.resume(path); }), "stoker.version"));
  net.load(path);
  EXPECT_EQ(net.parameter("0.weight"), weight);
}

TEST(Checkpoint, NamesWhatIsMissingExtraAndOfTheWrongShape) {
  const TempFolder folder;
  const auto path = folder / "net.safetensors";
  const std::vector<float> values(12, 0.25F);
  const std::vector<TensorToStore> tensors{stored_f32("0.weight", {4, 3}, values), stored_f32("head", {12}, values),
                                           stored_f32("0.bias", {3}, std::span(values).first(3))};
  write_safetensors(path, tensors);
  Network net(Model::layers({4, 3, 2}));
  const std::vector<float> before = net.parameter("0.bias");
  const Error error = error_of([&] { net.load(path); });
  EXPECT_EQ(error.code(), Code::bad_file);
  for (const char* part : {"missing: 2.weight, 2.bias", "extra: head", "0.weight is [4,3] and should be [3,4]"}) {
    EXPECT_TRUE(says(error, part)) << error.what();
  }
  EXPECT_EQ(net.parameter("0.bias"), before);

  const LoadReport report = net.init_from(path);
  EXPECT_EQ(report.loaded, (std::vector<std::string>{"0.bias"}));
  EXPECT_EQ(report.missing, (std::vector<std::string>{"2.weight", "2.bias"}));
  EXPECT_EQ(report.extra, (std::vector<std::string>{"head"}));
  EXPECT_EQ(report.wrong_shape.size(), 1U);
  EXPECT_EQ(net.parameter("0.bias"), std::vector<float>(3, 0.25F));
}

TEST(Checkpoint, AFullDiskLeavesTheOldFile) {
  const TempFolder folder;
  const auto path = folder / "net.safetensors";
  Network net(Model::layers({64, 64, 3}));
  net.save(path);
  const std::string old = read_text(path);
  net.train_step(std::vector<float>(64, 0.5F), std::vector<std::int32_t>{1});

  // No file may grow past 4 KB: writing fails in the middle, as on a disk that is full.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Error error = error_of([&] { net.save(path); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(error.code(), Code::io);
  EXPECT_TRUE(says(error, "net.safetensors")) << error.what();
  EXPECT_TRUE(read_text(path) == old);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a temporary file was left";
  net.save(path);
  EXPECT_FALSE(read_text(path) == old);
}

}  // namespace
}  // namespace stoker
