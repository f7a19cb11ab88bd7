// stoker study: the 2022 study, run again on this device, with the cures beside it. Writes what it has after each
// measurement, so that nothing is lost when it is stopped.
#include "study/study.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/report_text.h"
#include "cli/signals.h"
#include "cli/status_line.h"
#include "study/simulate.h"

namespace stoker::cli {
namespace {

struct StudyFlags {
  StudyOptions options;
  bool phones = false;
  std::string folder = "study";
};

// A bar on a terminal, elsewhere a line for each measurement.
void show_progress(StatusLine& status, const std::string& what, int done, int total) {
  const std::string count = std::to_string(done + 1) + "/" + std::to_string(total);
  if (!status.on_terminal()) return note_to_stderr("[" + count + "] " + what);
  constexpr int kWidth = 30;
  std::string bar(kWidth, ' ');
  std::fill_n(bar.begin(), done * kWidth / total, '#');
  status.show("[" + bar + "] " + count + " " + what);
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  write_file_atomically(
      path, [&](const WritePart& write) { write(std::as_bytes(std::span(text))); }, false);
}

// report.html, results.json, and each table as <section>-<number>.csv.
void write_report(const std::filesystem::path& folder, const Report& report) {
  write_text(folder / "report.html", to_html(report));
  write_text(folder / "results.json", to_json(report));
  for (const Section& section : report.sections) {
    int number = 0;
    for (const ReportBlock& block : section.blocks) {
      if (const auto* table = std::get_if<stoker::Table>(&block))
        write_text(folder / (section.id + "-" + std::to_string(++number) + ".csv"), to_csv(*table));
    }
  }
}

void run_in(const std::filesystem::path& folder, StudyFlags flags) {
  const CancelToken token;
  const SignalGuard guard(token);
  StatusLine status;
  flags.options.stop = [&] { return token.cancelled(); };
  flags.options.progress = [&](const std::string& what, int done, int total) {
    show_progress(status, what, done, total);
  };
  flags.options.note = [&](const std::string& line) {
    status.clear();
    note_to_stderr(line);
  };
  std::optional<Section> phones;  // predictions, apart from what is measured
  if (flags.phones) phones = phones_section();
  const auto report_of = [&](const StudyResults& results) {
    Report report = to_report(results);
    if (phones) report.sections.push_back(*phones);
    return report;
  };
  flags.options.measured = [&](const StudyResults& results) { write_report(folder, report_of(results)); };
  const StudyResults results = run_study(flags.options);
  status.clear();
  const Report report = report_of(results);
  write_report(folder, report);
  std::cout << report_text(report, TableFormat::plain, 0) << "\nWritten: " << (folder / "report.html").string()
            << ", results.json and a CSV file for each table\n";
  if (results.interrupted) throw Exit{kInterrupted};
}

void run(const StudyFlags& flags) {
  const std::filesystem::path folder = flags.folder;
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(folder, error);
  require(!error, Code::io, "cannot make the folder ", folder.string(), ": ", error.message());
  try {
    require_writable(folder / "report.html");
    run_in(folder, flags);
  } catch (const Error&) {
    if (is_new) std::filesystem::remove(folder, error);  // which leaves one that is not empty
    throw;
  }
}

}  // namespace

void add_study(CLI::App& app) {
  auto flags = std::make_shared<StudyFlags>();
  CLI::App* command = app.add_subcommand(
      "study", "Run the 2022 study again on this device: both bottlenecks, and the cures; writes a report");
  command->add_option("--device", flags->options.device, "opencl (the first) or opencl:N")->capture_default_str();
  command->add_option("--out", flags->folder, "Folder for report.html, results.json and CSV files")
      ->capture_default_str();
  command->add_flag("--quick", flags->options.quick, "Fewer nets and shorter measurements: about a minute");
  command->add_flag("--phones", flags->phones, "Add predictions for the study's phones, as stoker simulate makes them");
  command->add_option("--threads", flags->options.threads, "Threads of the CPU's side (default: one a core)")
      ->check(CLI::PositiveNumber);
  command->add_flag("!--no-self-test", flags->options.self_test, "Do not check the device's kernels first");
  command->footer(
      "Ctrl-C ends it with a report of what was measured until then.\n"
      "Example:\n  stoker study --quick --out my-phone");
  command->callback([flags] { run(*flags); });
}

}  // namespace stoker::cli
