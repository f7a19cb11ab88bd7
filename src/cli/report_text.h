// A Report on the terminal: its text and tables, without the plots.
#pragma once

#include <cstddef>
#include <string>

#include "cli/table.h"
#include "profile/report.h"

namespace stoker::cli {

// Of each table at most `rows` rows are shown; 0: all of them. `format`: plain or markdown.
[[nodiscard]] std::string section_text(const Section& section, TableFormat format = TableFormat::plain,
                                       std::size_t rows = 0);
[[nodiscard]] std::string report_text(const Report& report, TableFormat format, std::size_t rows);

}  // namespace stoker::cli
