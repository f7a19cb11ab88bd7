#include "backends/opencl/ring.h"

#include <algorithm>

#include "base/error.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kEntries = Executable::kUncollected;
constexpr std::int64_t kFirst = 16;  // words before the first entry; word 0 is the next entry's number
// Results are asked for when so many steps have gathered, or so much time has passed: slow steps report one by one.
constexpr std::int64_t kGathered = 16;
constexpr auto kPatience = std::chrono::milliseconds(50);

}  // namespace

Ring::Ring(Api& api, cl_command_queue queue, std::vector<Place> outputs)
    : api_(api),
      queue_(queue),
      outputs_(std::move(outputs)),
      host_(static_cast<std::size_t>(kEntries) * outputs_.size()) {}

// The device may still be writing to host_. If not even that can be waited for, the memory must outlive the queue.
Ring::~Ring() {
  if (!request_) return;
  try {
    api_.wait(request_.get(), Wait::finished);
  } catch (const Error&) {
    api_.keep(std::make_shared<std::vector<float>>(std::move(host_)));
  }
}

std::int64_t Ring::bytes() const {
  return outputs_.empty() ? 0 : 4 * (kFirst + kEntries * static_cast<std::int64_t>(words()));
}

Stage Ring::append_stage(const Place& ring, std::span<const Place> outputs) {
  Stage stage;
  stage.args.push_back(Arg::tensor(ring));
  stage.written.push_back(true);
  stage.code = str("if (ITEM == 0) {\n  int entry = I32(0)[0];\n  global float* to = F32(0) + ", kFirst, " + entry * ",
                   outputs.size(), ";\n");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    stage.args.push_back(Arg::tensor(outputs[i]));
    stage.written.push_back(false);
    stage.code += str("  to[", i, "] = F32(", i + 1, ")[0];\n");
  }
  stage.code += str("  I32(0)[0] = (entry + 1) % ", kEntries, ";\n}\n");
  return stage;
}

void Ring::submitted() {
  if (outputs_.empty()) return;
  ++submitted_;
  // What nobody collects is overwritten.
  collected_ = std::max(collected_, submitted_ - kEntries);
  ready_ = std::max(ready_, collected_);
  requested_ = std::max(requested_, collected_);
  finish_request(false);
  if (request_) return;
  if (submitted_ - requested_ >= kGathered || Clock::now() - last_request_ > kPatience) request();
}

void Ring::request() {
  while (requested_ < submitted_) {
    const std::int64_t entry = requested_ % kEntries;
    const std::int64_t count = std::min(submitted_ - requested_, kEntries - entry);
    const auto first = static_cast<std::size_t>(entry) * words();
    const auto floats = std::span(host_).subspan(first, static_cast<std::size_t>(count) * words());
    const std::int64_t offset = ring_.offset + 4 * (kFirst + static_cast<std::int64_t>(first));
    api_.read(queue_, ring_.buffer, offset, std::as_writable_bytes(floats), false, &request_);
    requested_ += count;
  }
  api_.flush(queue_);
  last_request_ = Clock::now();
}

void Ring::finish_request(bool wait) {
  if (!request_) return;
  const bool done = api_.is_done(request_.get());
  if (!done && !wait) return;
  api_.wait(request_.get(), done ? Wait::finished : Wait::blocking);
  request_ = {};
  ready_ = requested_;
}

bool Ring::collect(std::span<float> outputs, bool wait) {
  DCHECK(outputs.size() == words() && collected_ < submitted_);
  if (collected_ == ready_ && !request_ && wait) request();
  if (collected_ == ready_ && request_) finish_request(wait);
  if (collected_ == ready_) return false;
  const auto first = static_cast<std::size_t>(collected_ % kEntries) * words();
  std::copy_n(host_.begin() + static_cast<std::ptrdiff_t>(first), words(), outputs.begin());
  ++collected_;
  return true;
}

}  // namespace stoker::opencl
