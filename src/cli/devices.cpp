// stoker devices: what can train, and with --measure what each can do at most.
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/status_line.h"
#include "cli/table.h"
#include "profile/known_ceilings.h"

namespace stoker::cli {
namespace {

void list() {
  std::vector<std::vector<std::string>> rows;
  for (const Device& device : devices()) rows.push_back({device.id, device.name, device.details});
  std::cout << format_table({{"device", false}, {"name", false}, {"details", false}}, rows);
  if (rows.size() == 1) std::cout << "no OpenCL device was found:\n";
  for (const std::string& note : device_notes()) std::cout << "  " << note << "\n";
}

struct Quantity {
  const char* name;
  const char* unit;
  double Ceilings::*value;
  double scale;  // of the unit
  const char* meaning;
};

constexpr Quantity kQuantities[] = {
    {"multiply-adds", "GFLOP/s", &Ceilings::flops, 1e-9, "fp32 in registers, a multiply-add counted as two"},
    {"memory", "GB/s", &Ceilings::bandwidth, 1e-9, "the device's own, read + written, arrays larger than caches"},
    {"host to device", "GB/s", &Ceilings::to_device, 1e-9, "a large blocking write"},
    {"device to host", "GB/s", &Ceilings::to_host, 1e-9, "a large blocking read"},
    {"map + unmap", "us", &Ceilings::map_seconds, 1e6, "4 kB that the host fills in place"},
    {"launch", "us", &Ceilings::launch_seconds, 1e6, "one more small kernel in the queue; CPU: a job for all threads"},
    {"sync", "us", &Ceilings::sync_seconds, 1e6, "waiting for a small kernel, less the kernel"},
    {"small read", "us", &Ceilings::read_seconds, 1e6, "64 bytes, blocking, nothing else under way"},
    {"small write", "us", &Ceilings::write_seconds, 1e6, "64 bytes, blocking, nothing else under way"},
};

std::string number(double value) { return value > 0 ? fixed(value, value < 10 ? 2 : 1) : "-"; }

struct Measured {
  DeviceInfo device;
  Ceilings ceilings;
};

std::vector<Measured> measure_all() {
  StatusLine status;
  std::vector<Measured> all;
  const std::vector<DeviceInfo> found = list_devices();
  for (const DeviceInfo& device : found) {
    status.show("measuring " + device.id + " (" + std::to_string(all.size() + 1) + " of " +
                std::to_string(found.size()) + ")");
    const std::unique_ptr<Backend> backend = make_backend(device.id, {.self_test = false, .tuned = false});
    all.push_back({device, known_or_measured(*backend, Measure::again)});
  }
  return all;
}

// The devices side by side, the first of them (the CPU) as the measure of the others.
void measure() {
  const std::vector<Measured> all = measure_all();
  std::vector<Column> columns{{"ceiling", false}, {"unit", false}};
  for (const Measured& one : all) columns.push_back({one.device.id});
  for (std::size_t i = 1; i < all.size(); ++i) columns.push_back({all[i].device.id + " / " + all[0].device.id});
  columns.push_back({"what it is", false});
  std::vector<std::vector<std::string>> rows;
  for (const Quantity& quantity : kQuantities) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{quantity.name, quantity.unit});
    const double first = all[0].ceilings.*quantity.value;
    for (const Measured& one : all) row.push_back(number(one.ceilings.*quantity.value * quantity.scale));
    for (std::size_t i = 1; i < all.size(); ++i)
      row.push_back(first > 0 ? number(all[i].ceilings.*quantity.value / first) : "-");
    row.emplace_back(quantity.meaning);
  }
  for (const Measured& one : all) {
    std::cout << one.device.id << ": " << one.device.name << ", " << one.device.details << "\n";
    if (one.device.is_cpu && one.device.id != all[0].device.id)
      std::cout << "  this OpenCL device is a CPU: its figures tell nothing of GPUs\n";
    if (one.ceilings.flops <= 0)
      std::cout << "  this device accepts work and does none of it: there is nothing to measure but calls\n";
  }
  std::cout << "\n" << format_table(columns, rows);
  std::cout << "The best of repeated runs, earlier ones included; -: nothing crosses, or nothing was done. Kept in the "
               "cache folder for "
               "profile, study and simulate.\n";
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App* command = app.add_subcommand("devices", "List the devices that can train, or measure what they can do");
  auto ceilings = std::make_shared<bool>(false);
  command->add_flag("--measure", *ceilings, "Measure each device's ceilings: compute, memory, crossings, latencies");
  command->footer("Example:\n  stoker devices --measure");
  command->callback([ceilings] {
    if (*ceilings) {
      measure();
    } else {
      list();
    }
  });
}

}  // namespace stoker::cli
