// stoker profile: where a training step's time goes, op by op, under the device's ceilings; a trace and a page of it.
#include <cstdio>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/report_text.h"
#include "cli/signals.h"
#include "cli/status_line.h"
#include "profile/model_profile.h"
#include "profile/trace.h"
#include "run/api.h"

namespace stoker::cli {
namespace {

constexpr std::size_t kRows = 12;  // of a table, on the terminal

struct ProfileFlags {
  ModelFlags model;
  ProfileOptions options;
  bool no_roofline = false;
  bool all = false;
  std::string trace;
  std::string report;
  std::string output = "table";
};

void write_file(const std::string& path, const std::string& text) {
  write_file_atomically(
      path, [&](const WritePart& write) { write(std::as_bytes(std::span(text))); }, false);
}

void print(const ProfileFlags& flags, const Report& report) {
  if (flags.output == "json") {
    std::cout << to_json(report) << "\n";
  } else if (flags.output == "csv") {
    for (const Section& section : report.sections) {
      if (section.id == "ops") std::cout << to_csv(std::get<Table>(section.blocks.front()));
    }
  } else {
    const TableFormat format = flags.output == "md" ? TableFormat::markdown : TableFormat::plain;
    std::cout << report_text(report, format, flags.all ? 0 : kRows);
  }
}

ModelProfile measure(const ProfileFlags& flags, Recorder& recorder, const CancelToken& cancel) {
  StatusLine status;
  ProfileOptions options = flags.options;
  options.ceilings = !flags.no_roofline;
  options.on_note = [&](const std::string& line) {
    status.clear();
    note_to_stderr(line);
  };
  options.on_stage = [&](const std::string& stage) { status.show(stage); };
  options.on_step = [&](int done, int total) {
    status.show_seldom("profiling: step " + std::to_string(done) + " of " + std::to_string(total));
    return !cancel.cancelled();
  };
  options.interrupt = [&] {
    if (cancel.cancelled()) throw Error(Code::cancelled, "stopped");
  };
  const SignalGuard guard(cancel);
  return profile_model(ModelAccess::get(make_model(flags.model)), options, recorder);
}

void run(const ProfileFlags& flags) {
  // So that a long measurement is not lost for a wrong path.
  for (const std::string& path : {flags.trace, flags.report}) {
    if (!path.empty()) require_writable(path);
  }
  const CancelToken cancel;
  Recorder recorder;
  ModelProfile profile;
  try {
    profile = measure(flags, recorder, cancel);
  } catch (const Error& error) {
    if (error.code() != Code::cancelled) throw;
    std::fputs("stopped before the first step was done\n", stderr);
    throw Exit{kInterrupted};
  }
  const Report report = to_report(profile);
  print(flags, report);
  std::cout.flush();  // before what follows, which may go to /dev/stdout
  const bool talks = flags.output == "table";
  if (!flags.trace.empty()) {
    write_file(flags.trace, to_trace(recorder, profile.profile, report.title));
    if (talks) std::cout << "\nTrace: " << flags.trace << " (open it at ui.perfetto.dev or in chrome://tracing)\n";
  }
  if (!flags.report.empty()) {
    write_file(flags.report, to_html(report));
    if (talks) std::cout << "\nReport: " << flags.report << "\n";
  }
  if (cancel.cancelled()) throw Exit{kInterrupted};
}

}  // namespace

void add_profile(CLI::App& app) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command =
      app.add_subcommand("profile", "Show where a training step's time goes: classes, ops, kernels, memory, movement");
  add_model_flags(*command, flags->model);
  command->add_option("--device", flags->options.device, kDeviceHelp)->capture_default_str();
  command->add_option("--batch", flags->options.batch, "Items a step (default: the model's)")
      ->check(CLI::PositiveNumber);
  command->add_option("--steps", flags->options.steps, "Steps to look at (default: about a second of them)")
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", flags->options.threads, "Threads (default: one a core)")->check(CLI::PositiveNumber);
  command->add_option("--trace", flags->trace, "Write every call, wait and kernel as Chrome JSON (Perfetto)")
      ->option_text("FILE");
  command->add_option("--report", flags->report, "Write a page with plots, in one file")->option_text("FILE.html");
  command->add_flag("--no-roofline", flags->no_roofline, "Do not measure a new device's ceilings (some seconds)");
  command->add_flag("--all", flags->all, "Print all rows of all tables, not the first ones");
  command->add_option("--pass-off", flags->options.passes_off, "Leave out a graph pass")->option_text("NAME");
  command->add_flag_callback(
      "--no-self-test", [flags] { flags->options.self_test = false; },
      "OpenCL: do not check the kernels of a device that is new");
  command->add_option("-o,--output", flags->output, "Format; csv is the table of ops")
      ->check(CLI::IsMember({"table", "md", "csv", "json"}))
      ->capture_default_str();
  command->footer(
      "Each instant of a step has one class: a kernel runs, else data move, else the host waits, else it launches, "
      "else\nit does other work. Kernels are launched one by one here, never replayed, so that each can be timed.\n"
      "Example:\n  stoker profile lenet5 --device opencl --trace lenet5.json --report lenet5.html");
  command->callback([flags] { run(*flags); });
}

}  // namespace stoker::cli
