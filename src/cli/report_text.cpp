#include "cli/report_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/cli.h"

namespace stoker::cli {
namespace {

std::string cell_text(const Cell& cell, const stoker::Column& column) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double number = std::get<double>(cell);
  if (std::isnan(number)) return "-";
  if (column.decimals >= 0) return fixed(number, column.decimals);
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

// A terminal shows marks of bold text and code as they are: they are taken out.
std::string prose(const std::string& text, TableFormat format) {
  if (format == TableFormat::markdown) return text;
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "**") == 0) {
      ++i;
    } else if (text[i] != '`') {
      plain += text[i];
    }
  }
  return plain;
}

// Columns of text to the left.
bool is_number(const Table& table, std::size_t column) {
  return std::ranges::all_of(table.rows, [&](const auto& row) { return std::holds_alternative<double>(row[column]); });
}

std::string heading(const std::string& title, TableFormat format, int level) {
  if (format == TableFormat::markdown) return std::string(static_cast<std::size_t>(level), '#') + " " + title + "\n\n";
  return level == 2 ? title + "\n" + std::string(title.size(), '=') + "\n" : title + "\n";
}

std::string table_text(const Table& table, TableFormat format, std::size_t rows) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const stoker::Column& column = table.columns[i];
    columns.push_back({column.unit.empty() ? column.title : column.title + ", " + column.unit, is_number(table, i)});
  }
  const std::size_t shown = rows > 0 ? std::min(rows, table.rows.size()) : table.rows.size();
  std::vector<std::vector<std::string>> cells;
  for (std::size_t r = 0; r < shown; ++r) {
    std::vector<std::string>& line = cells.emplace_back();
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      line.push_back(cell_text(table.rows[r][i], table.columns[i]));
  }
  std::string text = heading(table.title, format, 3) + format_table(columns, cells, format);
  if (shown < table.rows.size()) text += "(" + std::to_string(table.rows.size() - shown) + " more)\n";
  if (!table.note.empty()) text += prose(table.note, format) + "\n";
  return text;
}

}  // namespace

std::string section_text(const Section& section, TableFormat format, std::size_t rows) {
  std::string text = heading(section.title, format, 2);
  for (const ReportBlock& block : section.blocks) {
    if (const auto* paragraph = std::get_if<std::string>(&block)) {
      text += "\n" + prose(*paragraph, format) + (paragraph->ends_with('\n') ? "" : "\n");
    } else if (const auto* table = std::get_if<Table>(&block)) {
      text += "\n" + table_text(*table, format, rows);
    }
  }
  return text;
}

std::string report_text(const Report& report, TableFormat format, std::size_t rows) {
  std::string text = heading(report.title, format, 1) + report.subtitle + "\n";
  for (const std::string& warning : report.warnings) text += prose(warning, format) + "\n";
  for (const Section& section : report.sections) text += "\n" + section_text(section, format, rows);
  return text;
}

}  // namespace stoker::cli
