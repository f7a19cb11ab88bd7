// Trains a small network on arrays of the caller's own: points in a square, labelled by the ring they lie in.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "stoker/stoker.hpp"

int main() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> place(-1, 1);
  std::vector<float> points;
  std::vector<std::int32_t> rings;
  for (int i = 0; i < 4000; ++i) {
    const float x = place(random);
    const float y = place(random);
    points.insert(points.end(), {x, y});
    rings.push_back(static_cast<std::int32_t>(std::sqrt(x * x + y * y) * 2));  // 0, 1 or 2
  }
  try {
    const stoker::Data data = stoker::Data::arrays(points, rings, {2});
    stoker::Network net(stoker::Model::layers({2, 32, 32, 3}), {.optimizer = "adam", .lr = 0.002});
    net.fit(data, {.epochs = 30, .on_step = [](const stoker::Progress& progress) {
                     if (progress.batch == progress.batches) std::printf("loss %.4f\n", progress.loss);
                     return true;  // false would stop here
                   }});
    const std::vector<float> logits = net.predict(std::vector<float>{0.1F, 0.2F});  // well inside the first ring
    std::printf("accuracy %.3f; logits at (0.1, 0.2): %.2f %.2f %.2f\n", net.evaluate(data).accuracy,
                static_cast<double>(logits[0]), static_cast<double>(logits[1]), static_cast<double>(logits[2]));
    return net.evaluate(data).accuracy > 0.95 && logits[0] > logits[1] ? 0 : 1;
  } catch (const stoker::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
