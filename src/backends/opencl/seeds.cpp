// Seeds: the parameters that each kernel family starts with on a kind of device, each with its source, and what the
// tuner tries besides.
#include <algorithm>

#include "backends/opencl/tuning.h"

namespace stoker::opencl {
namespace {

constexpr const char* kClblast = "CLBlast's tuned database, fp32 GEMM; registers and spills by tools/phones";
constexpr const char* kPocl = "measured on PoCL 3.1, AVX-512";
constexpr const char* kPredicted =
    "predicted: published peaks do 12 to 52 operations while a byte moves, kernels fewer";
constexpr const char* kNoSpills = "no spills with Mesa's compiler";

const std::vector<Seed>& seeds() {
  static const std::vector<Seed> rows = {
      // On CPUs gemm_panel.cl computes it. LOCAL: with images in local memory where they fit.
      {"conv2d", Family::cpu, {{"PANEL", 1}, {"LOCAL", 1}}, kPocl},
      {"conv2d_weight", Family::cpu, {{"PANEL", 1}, {"LOCAL", 1}}, kPocl},
      // GPUs: gemm_direct.cl. TM x TN results a work-item, GX x GY work-items a group, IMAGE as there.
      {"gemm", Family::adreno, {{"TM", 4}, {"TN", 8}, {"IMAGE", 3}, {"GX", 8}, {"GY", 16}}, kClblast},
      {"gemm", Family::mali, {{"TM", 4}, {"TN", 4}, {"IMAGE", 0}, {"GX", 8}, {"GY", 8}}, kClblast},
      {"gemm", Family::powervr, {{"TM", 8}, {"TN", 8}, {"IMAGE", 0}, {"GX", 8}, {"GY", 8}}, kClblast},
      {"gemm", Family::other, {{"TM", 4}, {"TN", 4}, {"IMAGE", 0}, {"GX", 8}, {"GY", 8}}, "the least registers"},
      // CPUs: gemm_panel.cl. The tile MR x (NV * V) fills the registers; MC x NC the macro-tile, KC the depth of a
      // block.
      {"gemm",
       Family::cpu,
       {{"V", 4}, {"NV", 2}, {"MR", 8}, {"KC", 256}, {"MC", 96}, {"NC", 256}},
       "fits 32 short registers"},
      {"gemm",
       Family::cpu,
       {{"V", 8}, {"NV", 2}, {"MR", 6}, {"KC", 256}, {"MC", 96}, {"NC", 256}},
       "fits 16 registers",
       8},
      {"gemm", Family::cpu, {{"V", 16}, {"NV", 2}, {"MR", 12}, {"KC", 256}, {"MC", 96}, {"NC", 256}}, kPocl, 16},
      {"depthwise", Family::cpu, {{"VEC", 16}, {"ROWS", 4}, {"GROUP", 1}}, kPocl, 16},
      {"depthwise", Family::cpu, {{"VEC", 8}, {"ROWS", 2}, {"GROUP", 1}}, "fits 16 registers", 8},
      {"depthwise", Family::cpu, {{"VEC", 4}, {"ROWS", 2}, {"GROUP", 1}}, "fits 32 short registers"},
      {"depthwise", Family::adreno, {{"VEC", 4}, {"ROWS", 2}, {"GROUP", 64}}, kNoSpills},
      {"depthwise", Family::mali, {{"VEC", 2}, {"ROWS", 2}, {"GROUP", 64}}, kNoSpills},
      {"depthwise", Family::other, {{"VEC", 4}, {"ROWS", 1}, {"GROUP", 64}}, "the smallest tile"},
      {"pooling", Family::cpu, {{"VEC", 16}, {"OVERLAP", 1}, {"GROUP", 1}}, kPocl, 16},
      {"pooling", Family::cpu, {{"VEC", 8}, {"OVERLAP", 1}, {"GROUP", 1}}, "a native register", 8},
      {"pooling", Family::cpu, {{"VEC", 4}, {"OVERLAP", 1}, {"GROUP", 1}}, "a native register"},
      {"pooling", Family::other, {{"VEC", 4}, {"OVERLAP", 0}, {"GROUP", 64}}, kNoSpills},
      // Convolution on GPUs: conv2d_tile.cl and conv2d_weight_tile.cl, tiles as there, GROUP work-items a group.
      {"conv2d",
       Family::adreno,
       {{"TM", 4}, {"TN", 8}, {"TAPS", 3}, {"IMAGE", 1}, {"POINTERS", 1}, {"GROUP", 64}},
       kNoSpills},
      {"conv2d",
       Family::other,
       {{"TM", 2}, {"TN", 4}, {"TAPS", 2}, {"IMAGE", 0}, {"POINTERS", 0}, {"GROUP", 64}},
       kNoSpills},
      {"conv2d_weight",
       Family::adreno,
       {{"TM", 8}, {"TN", 8}, {"PIXELS", 2}, {"IMAGE", 2}, {"POINTERS", 1}, {"GROUP", 64}},
       kNoSpills},
      {"conv2d_weight",
       Family::other,
       {{"TM", 4}, {"TN", 4}, {"PIXELS", 1}, {"IMAGE", 0}, {"POINTERS", 0}, {"GROUP", 64}},
       kNoSpills},
      // Winograd: winograd.cl, parameters as in conv2d.h.
      {"winograd", Family::cpu, {{"VEC", 16}, {"LX", 0}, {"KB", 8192}, {"INTENSITY", 4}}, kPocl, 16},
      {"winograd", Family::cpu, {{"VEC", 8}, {"LX", 0}, {"KB", 8192}, {"INTENSITY", 4}}, "a native register", 8},
      {"winograd", Family::cpu, {{"VEC", 4}, {"LX", 0}, {"KB", 8192}, {"INTENSITY", 4}}, "a native register"},
      {"winograd", Family::adreno, {{"VEC", 2}, {"LX", 16}, {"KB", 16384}, {"INTENSITY", 35}}, kPredicted},
      {"winograd", Family::other, {{"VEC", 1}, {"LX", 16}, {"KB", 16384}, {"INTENSITY", 35}}, kPredicted},
  };
  return rows;
}

void add_depthwise(const Device& device, std::vector<Params>& list) {
  const int widest = device.is_cpu() ? 2 * device.native_width : 4;
  for (int vec = device.is_cpu() ? device.native_width / 2 : 2; vec <= std::min(widest, 16); vec *= 2) {
    for (const int rows : {1, 2, 4}) {
      for (const int group : {64, 128}) {
        if (device.is_cpu() ? group > 64 : rows > 2) continue;
        list.push_back({{"VEC", vec}, {"ROWS", rows}, {"GROUP", device.is_cpu() ? 1 : group}});
      }
    }
  }
}

void add_pooling(const Device& device, std::vector<Params>& list) {
  if (device.is_cpu()) {
    for (const int vec : {4, 8, 16}) list.push_back({{"VEC", vec}, {"OVERLAP", 1}, {"GROUP", 1}});
    return;
  }
  for (const int vec : {1, 2, 4})
    for (const int group : {32, 64, 128}) list.push_back({{"VEC", vec}, {"OVERLAP", 0}, {"GROUP", group}});
}

void add_gemm_panels(const Device& device, std::vector<Params>& list) {
  const bool wide = device.native_width >= 16;
  for (const int rows : wide ? std::vector{8, 12, 14} : std::vector{4, 6, 8})
    for (const int depth : {128, 256})
      for (const int mc : {48, 96, 192})
        for (const int nc : {128, 256})
          list.push_back({{"V", std::clamp(device.native_width, 4, 16)},
                          {"NV", 2},
                          {"MR", rows},
                          {"KC", depth},
                          {"MC", mc},
                          {"NC", nc}});
}

void add_gemm_tiles(const Device& device, std::vector<Params>& list) {
  const bool images = device.image_texels > 0 && !device.quirks.no_images;
  for (const auto& [tm, tn] : {std::pair(4, 4), std::pair(4, 8), std::pair(8, 4), std::pair(8, 8)}) {
    if (device.family == Family::mali && tm * tn > 16) continue;  // spills
    for (const int image : images ? std::vector{0, 1, 3} : std::vector{0})
      for (const auto& [gx, gy] :
           {std::pair(8, 8), std::pair(4, 16), std::pair(16, 4), std::pair(8, 16), std::pair(16, 8)})
        list.push_back({{"TM", tm}, {"TN", tn}, {"IMAGE", image}, {"GX", gx}, {"GY", gy}});
  }
}

// On CPUs gemm_panel.cl has the parameters of tiles.
void add_conv2d_panels(std::vector<Params>& list) {
  for (const int local : {0, 1}) list.push_back({{"PANEL", 1}, {"LOCAL", local}});
}

// Always, never, and in larger or smaller blocks.
void add_winograd(const Device& device, std::vector<Params>& list) {
  constexpr int kNever = 1 << 20;
  const Params& seed = find_seed("winograd", device)->params;
  for (const auto& [kb, intensity] : {std::pair(4096, kNever), {1024, 0}, {4096, 0}, {16384, 0}})
    list.push_back({seed[0], seed[1], {"KB", kb}, {"INTENSITY", intensity}});
}

void add_conv2d(const Device& device, std::vector<Params>& list) {
  if (device.is_cpu()) return add_conv2d_panels(list);
  for (const auto& [tm, tn] : {std::pair(2, 4), std::pair(4, 4), std::pair(4, 8)})
    for (const int taps : {1, 2, 3})
      for (const int image : device.image_texels > 0 ? std::vector{0, 1} : std::vector{0})
        for (const int pointers : {0, 1})
          list.push_back(
              {{"TM", tm}, {"TN", tn}, {"TAPS", taps}, {"IMAGE", image}, {"POINTERS", pointers}, {"GROUP", 64}});
}

void add_conv2d_weight(const Device& device, std::vector<Params>& list) {
  if (device.is_cpu()) return add_conv2d_panels(list);
  for (const int tile : {4, 8})
    for (const int pixels : {1, 2})
      for (const int image : device.image_texels > 0 ? std::vector{0, 1, 2} : std::vector{0})
        for (const int pointers : {0, 1})
          list.push_back({{"TM", tile},
                          {"TN", tile},
                          {"PIXELS", pixels},
                          {"IMAGE", image},
                          {"POINTERS", pointers},
                          {"GROUP", 64}});
}

}  // namespace

std::span<const Seed> all_seeds() { return seeds(); }

std::vector<Params> candidates(std::string_view kernel, const Device& device) {
  std::vector<Params> list;
  if (const Seed* seed = find_seed(kernel, device)) list.push_back(seed->params);
  if (kernel == "gemm") device.is_cpu() ? add_gemm_panels(device, list) : add_gemm_tiles(device, list);
  if (kernel == "depthwise") add_depthwise(device, list);
  if (kernel == "pooling") add_pooling(device, list);
  if (kernel == "conv2d") add_conv2d(device, list);
  if (kernel == "conv2d_weight") add_conv2d_weight(device, list);
  if (kernel == "winograd") add_winograd(device, list);
  return list;
}

}  // namespace stoker::opencl
