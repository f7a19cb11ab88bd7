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
    {Family::adreno, "", "", "", "flush every 10 launches", [](Quirks& q) { q.launches_a_flush = 10; },
     "Qualcomm's OpenCL guide: commands gather until a flush; engines that flush every 10 or so keep the GPU busy"},
    {Family::mali, "", "", "", "flush every 16 launches", [](Quirks& q) { q.launches_a_flush = 16; },
     "Arm's OpenCL guide; engines flush every 2 to 24 launches there, or the GPU idles while the queue fills"},
    {Family::powervr, "", "", "", "flush every 16 launches", [](Quirks& q) { q.launches_a_flush = 16; },
     "no measurement: the value of Mali"},
    {Family::adreno, "", "", "", "submissions of at most 0.25 s", [](Quirks& q) { q.submission_seconds = 0.25; },
     "Linux' msm driver takes a GPU for hung after 0.5 s without progress (DRM_MSM_HANGCHECK_DEFAULT_PERIOD)"},
    {Family::mali, "", "", "", "submissions of at most 1 s", [](Quirks& q) { q.submission_seconds = 1.0; },
     "Arm's kernel driver stops a job softly at first and kills it after some seconds (JS_HARD_STOP_TICKS_CL)"},
    {Family::powervr, "", "", "", "submissions of at most 1 s", [](Quirks& q) { q.submission_seconds = 1.0; },
     "no measurement: the value of Mali"},
    {Family::mali, "", "Mali-T", "", "no image views", [](Quirks& q) { q.no_images = true; },
     "Midgard: an image of a buffer holds at most 65536 texels, and buffers share its cache (CLBlast's rows use "
     "buffers)"},
    {Family::cpu, "Portable Computing Language", "", "", "no image views", [](Quirks& q) { q.no_images = true; },
     "PoCL 3.1: clCreateImage over a sub-buffer gives CL_INVALID_MEM_OBJECT; and a CPU's buffers are cached anyway"},
    {Family::other, "rusticl", "", "22.3", "no image views", [](Quirks& q) { q.no_images = true; },
     "Mesa 22.3.6: clEnqueueNDRangeKernel gives CL_OUT_OF_HOST_MEMORY for an image1d_buffer_t over a sub-buffer; over "
     "a "
     "whole buffer the same kernel, y[i] = read_imagef(x, i), is right"},
    {Family::other, "rusticl", "", "22.3", "kernels' limits are not asked", [](Quirks& q) { q.no_group_limits = true; },
     "Mesa 22.3.6: CL_KERNEL_WORK_GROUP_SIZE is the preferred multiple, 32 on llvmpipe, where groups of 256 run"},
    {Family::cpu, "", "llvmpipe", "", "the small work-items of GPUs", [](Quirks& q) { q.short_loops = true; },
     "Mesa 22.3.6: all loops of a work-item together end after 65535 rounds (LP_MAX_TGSI_LOOP_ITERATIONS), without an "
     "error: for (i = 0; i < 1000; ++i) for (j = 0; j < 1000; ++j) ++n gives 65405"},
    {Family::cpu, "Intel(R) OpenCL", "", "", "no command buffers", [](Quirks& q) { q.no_command_buffers = true; },
     "runtime 2026.22: 2 kB a launch are lost in each replay (410 MB after 2000 replays of 100 launches), and a "
     "replayed "
     "launch takes 3.6 us where an enqueued one takes 2.4"},
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
    if ((row.family == Family::other || row.family == device.family) && matches(row.platform, device.platform) &&
        matches(row.name, device.name) && matches(row.driver, device.driver))
      row.apply(quirks);
  return quirks;
}

}  // namespace stoker::opencl
