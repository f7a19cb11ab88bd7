#include "backends/opencl/device.h"

#include <algorithm>

#include "backends/opencl/quirks.h"
#include "base/error.h"

namespace stoker::opencl {

const char* to_string(Family family) {
  switch (family) {
    case Family::cpu: return "cpu";
    case Family::adreno: return "adreno";
    case Family::mali: return "mali";
    case Family::powervr: return "powervr";
    case Family::other: return "other";
  }
  return "?";
}

Family classify(std::string_view name, std::string_view vendor, bool is_cpu) {
  if (is_cpu) return Family::cpu;
  struct Row {
    const char* word;
    Family family;
  };
  // Makers' drivers say "QUALCOMM Adreno(TM)", "Mali-G76", "PowerVR Rogue GE8320"; Mesa's say "FD630", "Adreno (TM)
  // 630", "Turnip", "Mali-G57 (Panfrost)", "Panfrost".
  constexpr Row kNames[] = {
      {"adreno", Family::adreno},   {"qualcomm", Family::adreno},     {"freedreno", Family::adreno},
      {"mali", Family::mali},       {"immortalis", Family::mali},     {"panfrost", Family::mali},
      {"powervr", Family::powervr}, {"imagination", Family::powervr}, {"img *xe-", Family::powervr}};
  for (const std::string_view text : {name, vendor})
    for (const Row& row : kNames)
      if (matches(row.word, text)) return row.family;
  if (name.starts_with("FD") && name.size() > 2 && name[2] >= '0' && name[2] <= '9') return Family::adreno;
  if (vendor == "ARM" || vendor == "Arm") return Family::mali;
  return Family::other;
}

std::optional<Family> family_of(std::string_view name) {
  for (const Family family : {Family::cpu, Family::adreno, Family::mali, Family::powervr, Family::other})
    if (name == to_string(family)) return family;
  return std::nullopt;
}

bool has_extension(std::string_view list, std::string_view extension) {
  for (std::size_t at = list.find(extension); at != std::string_view::npos; at = list.find(extension, at + 1)) {
    const std::size_t end = at + extension.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

std::string Device::key() const {
  return str(name, "\n", vendor, "\n", version, "\n", driver, "\n", platform, "\n", to_string(family), "\n");
}

}  // namespace stoker::opencl
