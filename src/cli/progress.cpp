#include "cli/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "cli/cli.h"

namespace stoker::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr auto kBetweenDraws = std::chrono::milliseconds(66);

std::string bar(double share) {
  const int full = static_cast<int>(share * kBarWidth);
  std::string text(static_cast<std::size_t>(full), '=');
  if (full < kBarWidth) text += '>';
  text.resize(kBarWidth, ' ');
  return "[" + text + "]";
}

// 75 s -> 1:15, 3700 s -> 1:01:40.
std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::isfinite(seconds) ? seconds + 0.5 : 0);
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

}  // namespace

ProgressPrinter::ProgressPrinter() : terminal_(::isatty(STDOUT_FILENO) != 0) {}

void ProgressPrinter::step(const Progress& progress) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (drawn_ && now - last_drawn_ < kBetweenDraws) return;
  last_drawn_ = now;
  drawn_ = true;
  const double share = static_cast<double>(progress.batch) / static_cast<double>(progress.batches);
  std::printf("\r\033[Kepoch %lld/%lld %s loss %.4f  accuracy %.2f %%  %s items/s  %s left",
              static_cast<long long>(progress.epoch + 1), static_cast<long long>(progress.epochs), bar(share).c_str(),
              progress.loss, progress.accuracy * 100, grouped(std::llround(progress.items_per_s)).c_str(),
              clock_text(progress.seconds_left).c_str());
  std::fflush(stdout);
}

void ProgressPrinter::epoch(const EpochReport& report, std::int64_t epochs) {
  clear();
  std::string line = "epoch " + std::to_string(report.epoch + 1) + "/" + std::to_string(epochs) + "  loss " +
                     fixed(report.loss, 4) + "  accuracy " + fixed(report.accuracy * 100, 2) + " %";
  if (report.test_items > 0) {
    line +=
        "  test loss " + fixed(report.test_loss, 4) + "  test accuracy " + fixed(report.test_accuracy * 100, 2) + " %";
  }
  line += "  " + grouped(std::llround(report.items_per_s)) + " items/s  " + fixed(report.seconds, 1) + " s";
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void ProgressPrinter::clear() {
  if (drawn_) std::printf("\r\033[K");
  drawn_ = false;
}

}  // namespace stoker::cli
