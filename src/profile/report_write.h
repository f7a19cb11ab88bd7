// What the writers of reports share: a chart as JSON, and the parts of a page as HTML.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "profile/report.h"

namespace stoker {

[[nodiscard]] nlohmann::ordered_json chart_json(const Chart& chart);
// Never throws: bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string dump_json(const nlohmann::ordered_json& json, int indent);

// to_html() with the script of a charting library; without plots if it is empty.
[[nodiscard]] std::string to_html(const Report& report, std::string_view library);
// For HTML's text and attribute values.
[[nodiscard]] std::string escape_html(std::string_view text);
// 12,345.68; a dash for NaN; "< 0.01" for what would be rounded to zero. Decimals as in Column.
[[nodiscard]] std::string format_number(double number, int decimals);
// Paragraphs, lists, code and bold as report.h describes them.
[[nodiscard]] std::string text_html(const std::string& text);
[[nodiscard]] std::string badge_html(const std::string& badge);
[[nodiscard]] std::string table_html(const Table& table);
// The figures of a chart: a row for each category, or for each point.
[[nodiscard]] Table chart_table(const Chart& chart);

}  // namespace stoker
