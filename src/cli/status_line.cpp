#include "cli/status_line.h"

#include <unistd.h>

#include <cstdio>

namespace stoker::cli {
namespace {

constexpr auto kBetweenDraws = std::chrono::milliseconds(200);
constexpr const char* kEraseLine = "\r\033[K";

}  // namespace

StatusLine::StatusLine() : terminal_(::isatty(STDERR_FILENO) != 0) {}

void StatusLine::show(const std::string& text) {
  if (!terminal_) return;
  std::fprintf(stderr, "%s%s ", kEraseLine, text.c_str());
  std::fflush(stderr);
  shown_ = true;
  last_ = Clock::now();
}

void StatusLine::show_seldom(const std::string& text) {
  if (Clock::now() - last_ >= kBetweenDraws) show(text);
}

void StatusLine::clear() {
  if (shown_) std::fputs(kEraseLine, stderr);
  shown_ = false;
}

}  // namespace stoker::cli
