#include "cli/table.h"

#include <algorithm>

namespace stoker::cli {
namespace {

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return right ? space + text : text + space;
}

// Fields with a separator or a quote are quoted.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) text += (i > 0 ? "," : "") + csv_field(columns[i].title);
  text += "\n";
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + csv_field(row[i]);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string format_table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                         TableFormat format) {
  if (format == TableFormat::csv) return csv(columns, rows);
  const bool markdown = format == TableFormat::markdown;
  std::vector<std::size_t> widths;
  for (const Column& column : columns) widths.push_back(column.title.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto add_row = [&](const auto& cell) {
    std::string line = markdown ? "|" : "";
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string field = padded(cell(i), widths[i], columns[i].is_number);
      line += markdown ? " " + field + " |" : (i > 0 ? "  " : "") + field;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_row([&](std::size_t i) { return columns[i].title; });
  add_row([&](std::size_t i) {
    std::string rule(widths[i], '-');
    if (markdown && columns[i].is_number) rule.back() = ':';
    return rule;
  });
  for (const auto& row : rows) add_row([&](std::size_t i) { return row[i]; });
  return text;
}

}  // namespace stoker::cli
