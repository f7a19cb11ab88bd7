// Builds a network of its own, with a residual connection and batch norm, and a loss of its own from the public ops;
// trains it on the built-in digits and shows that a checkpoint brings it back.
#include <cstdio>
#include <filesystem>

#include "stoker/stoker.hpp"

namespace {

using stoker::Builder;
using stoker::Tensor;

// y = relu(x + conv(relu(conv(x)))), each convolution followed by batch norm.
Tensor residual_block(Builder& net, Tensor x, const std::string& name) {
  const std::int64_t channels = x.shape().back();
  const stoker::Conv conv{.kernel = 3, .pad = 1, .bias = false};
  Tensor y = relu(net.batch_norm(net.conv2d(x, name + ".conv1", channels, conv), name + ".bn1"));
  y = net.batch_norm(net.conv2d(y, name + ".conv2", channels, conv), name + ".bn2");
  return relu(x + y);
}

Tensor small_residual_net(Builder& net, Tensor x) {
  x = relu(net.conv2d(x, "stem", 8, {.kernel = 3, .stride = 2, .pad = 1}));
  x = residual_block(net, x, "block");
  return net.linear(flatten(max_pool(x, 2, 2)), "fc", 10);
}

// Focal loss: cross-entropy in which samples that are right already count less, -(1 - p)^2 log p.
Tensor focal_loss(Builder&, Tensor output, Tensor labels) {
  const Tensor log_p = sum(log_softmax(output) * one_hot(labels, 10), {1});
  const Tensor miss = -exp(log_p) + 1.0F;
  return -(miss * miss * log_p);
}

}  // namespace

int main() {
  try {
    const stoker::Model model = stoker::Model::custom("small-residual", {28, 28, 1}, 10, small_residual_net);
    const stoker::TrainOptions options{.optimizer = "adamw", .lr = 2e-3, .weight_decay = 1e-4, .loss = focal_loss};
    const stoker::Data data = stoker::Data::open("digits", {.train_items = 2000, .test_items = 500});

    stoker::Network net(model, options);
    std::printf("%s: %lld parameters\n", model.name().c_str(), static_cast<long long>(net.parameter_count()));
    net.fit(data, {.epochs = 3, .on_epoch = [](const stoker::EpochReport& report) {
                     std::printf("epoch %lld: focal loss %.4f, test accuracy %.3f\n",
                                 static_cast<long long>(report.epoch + 1), report.loss, report.test_accuracy);
                   }});

    const auto file = std::filesystem::temp_directory_path() / "stoker_custom_net.safetensors";
    net.save(file);
    stoker::Network again(model, options);
    again.load(file);
    std::filesystem::remove(file);
    const double accuracy = again.evaluate(data).accuracy;
    std::printf("after loading: test accuracy %.3f\n", accuracy);
    return accuracy == net.evaluate(data).accuracy && accuracy > 0.9 ? 0 : 1;
  } catch (const stoker::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
