// A report's section as text for people: paragraphs and tables. Plots are left out.
#pragma once

#include <string>

#include "profile/report.h"

namespace stoker::cli {

[[nodiscard]] std::string to_text(const stoker::Table& table);
[[nodiscard]] std::string to_text(const Section& section);

}  // namespace stoker::cli
