// stoker check: are the kernels of an OpenCL device right? The exit status says it too.
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/cli.h"

namespace stoker::cli {
namespace {

void run(const std::string& device) {
  std::printf("%-10s  %-26s  %8s  result\n", "kernels", "case", "error");
  const DeviceCheck check = check_device(device, [](const KernelCheck& row) {
    std::printf("%-10s  %-26s  %8.1e  %s\n", row.kernel.c_str(), row.name.c_str(), row.error,
                row.passed ? "right" : ("WRONG: " + row.problem).c_str());
    std::fflush(stdout);
  });
  for (const std::string& note : check.notes) std::cout << note << "\n";
  if (!check.passed) throw Exit{1};
  std::cout << "all " << check.checks.size() << " cases are right, forward and backward\n";
}

}  // namespace

void add_check(CLI::App& app) {
  auto device = std::make_shared<std::string>("opencl");
  CLI::App* command =
      app.add_subcommand("check", "Test every kernel of an OpenCL device, forward and backward, against the CPU");
  command->add_option("--device", *device, "opencl (the first) or opencl:N")->capture_default_str();
  command->footer(
      "Kernels that are wrong are put into quarantine: plain ones take their place from then on.\n"
      "The exit status is 0 only if all is right.\n"
      "Example:\n  stoker check --device opencl:0");
  command->callback([device] { run(*device); });
}

}  // namespace stoker::cli
