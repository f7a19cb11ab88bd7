// What is going on, on one line of the terminal that vanishes when it is done; nothing where errors go elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace stoker::cli {

class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  [[nodiscard]] bool on_terminal() const { return terminal_; }
  void show(const std::string& text);
  // For what is told within something that is measured, and must not cost it time: at most five times a second.
  void show_seldom(const std::string& text);
  // Room for other lines.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool shown_ = false;
  Clock::time_point last_{};
};

}  // namespace stoker::cli
