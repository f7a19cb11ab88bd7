#include "backends/opencl/quirks.h"

#include <cctype>

namespace stoker::opencl {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// `pattern` fits a beginning of `text`.
bool fits_at_start(std::string_view pattern, std::string_view text) {
  while (!pattern.empty() && pattern.front() != '*') {
    if (text.empty() || lower(pattern.front()) != lower(text.front())) return false;
    pattern.remove_prefix(1);
    text.remove_prefix(1);
  }
  return pattern.empty() || matches(pattern.substr(1), text);
}

constexpr QuirkRow kRows[] = {
    {Family::adreno, "", "", "flush every 10 launches", [](Quirks& q) { q.launches_a_flush = 10; },
     "Qualcomm's OpenCL guide: the driver gathers commands until a flush; engines that flush every 10 or so keep the "
     "GPU "
     "busy"},
    {Family::mali, "", "", "flush every 16 launches", [](Quirks& q) { q.launches_a_flush = 16; },
     "Arm's OpenCL guide, and ArmNN and MNN, flush every 2 to 24 launches, or the GPU idles while the queue fills"},
    {Family::powervr, "", "", "flush every 16 launches", [](Quirks& q) { q.launches_a_flush = 16; },
     "no measurement: the value of Mali"},
    {Family::adreno, "", "", "submissions of at most 0.25 s", [](Quirks& q) { q.submission_seconds = 0.25; },
     "Linux' msm driver takes a GPU for hung after 0.5 s without progress (DRM_MSM_HANGCHECK_DEFAULT_PERIOD); display "
     "work "
     "shares the GPU"},
    {Family::mali, "", "", "submissions of at most 1 s", [](Quirks& q) { q.submission_seconds = 1.0; },
     "Arm's kbase driver soft-stops jobs from 0.1 s on and kills them after a few seconds (JS_HARD_STOP_TICKS_CL)"},
    {Family::powervr, "", "", "submissions of at most 1 s", [](Quirks& q) { q.submission_seconds = 1.0; },
     "no measurement: the value of Mali"},
    {Family::mali, "Mali-T", "", "no image views", [](Quirks& q) { q.no_images = true; },
     "Midgard: images of buffers hold at most 65536 texels, and its loads do not profit (CLBlast's tuned Mali rows use "
     "buffers)"},
    {Family::mali, "", "", "no image views", [](Quirks& q) { q.no_images = true; },
     "buffers and images share one cache on Mali, and the 4x8 kernel with an image spills twice as much there as with "
     "buffers (Mesa's compiler: 66 against 33)"},
    {Family::cpu, "", "", "no image views", [](Quirks& q) { q.no_images = true; },
     "a CPU has no texture unit: PoCL and Intel's runtime compute each texel's address in software"},
};

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  for (;; text.remove_prefix(1)) {
    if (fits_at_start(pattern, text)) return true;
    if (text.empty()) return false;
  }
}

std::span<const QuirkRow> all_quirks() { return kRows; }

Quirks quirks_of(const Device& device) {
  Quirks quirks;
  for (const QuirkRow& row : kRows)
    if ((row.family == Family::other || row.family == device.family) && matches(row.name, device.name) &&
        matches(row.driver, device.driver))
      row.apply(quirks);
  return quirks;
}

}  // namespace stoker::opencl
