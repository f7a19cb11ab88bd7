// Phones that are not at hand: what is published of their chips, as ranges with sources, and the Machines that follow
// from it. Every prediction made from this is a range; nothing in it was fitted to the outcome of a study.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backends/opencl/device.h"
#include "study/predict.h"

namespace stoker {

// From low to high; zeros where nothing is published.
struct Figure {
  double low = 0;
  double high = 0;
  const char* source = "";  // M: measured, S: a maker's or a database's figure, D: derived, K: common knowledge without
                            // a reference, P: the 2022 study; numbers tell sources apart

  [[nodiscard]] bool is_known() const { return high > 0; }
};

struct Chip {
  const char* id;  // what --phone takes
  const char* soc;
  const char* gpu;
  opencl::Family family;
  int year;                  // of the first phones with it
  const char* compiled_for;  // whose compiler's hot loops stand for this GPU's (hot_loop())
  Figure gpu_mhz;
  Figure peak_gflops;      // fp32, the maker's figure or derived from it
  Figure measured_gflops;  // fp32 multiply-adds, measured
  Figure dram_gbs;         // of the memory, by its specification
  Figure measured_gbs;     // by the GPU
  Figure write_gbs;        // host to device
  Figure read_gbs;         // device to host
  Figure launch_us;        // a kernel's way from the queue to its start
  Figure gemm_gflops;      // the best matrix product that was published
  Figure cpu_gflops;       // fp32 on all cores
};

[[nodiscard]] std::span<const Chip> all_chips();
// An Error lists the ids there are.
[[nodiscard]] const Chip& find_chip(std::string_view id);
// "OnePlus 6" and the like: those of the 2022 study (secondary, unverified).
[[nodiscard]] std::span<const std::string_view> study_phones();

// Multiply-adds an instruction of a kernel's hot loop, as Mesa's compiler makes it for the GPU: the middle one of the
// kernel's variants, and the best (docs/phone-kernels.md).
struct HotLoop {
  const char* gpu;
  WorkKind kind;
  double middle;
  double best;
};
[[nodiscard]] std::span<const HotLoop> hot_loops();

// What a missing figure is taken from, and the range that it gave.
struct Filled {
  double low = 0;
  double high = 0;
  std::string source;  // the chip's own, or "from" and the chips'
};

// Figures of `chip`, filled in from the nearest chips of its family (older and newer, or of the same year) that have
// them, or of any family where its own has none.
struct ChipFigures {
  Filled peak_gflops;  // measured where it was
  Filled gemm_gflops;
  Filled gbs;
  Filled write_gbs;
  Filled read_gbs;
  Filled launch_us;
  Filled cpu_gflops;
  Filled alus;
};
[[nodiscard]] ChipFigures figures_of(const Chip& chip);

// The fastest and the slowest that the figures allow.
struct MachineRange {
  Machine fast;
  Machine slow;
};
[[nodiscard]] MachineRange gpu_of(const Chip& chip);

struct GflopsRange {
  double low = 0;
  double high = 0;
};
inline constexpr GflopsRange kStudyCpu{15, 30};  // GFLOPS; the study's abstract
// The CPU at so many GFLOPS in matrix products and convolutions.
[[nodiscard]] MachineRange cpu_of(const Chip& chip, const GflopsRange& gflops);

}  // namespace stoker
