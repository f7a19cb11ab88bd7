#include "cli/print_section.h"

#include <cmath>

#include "cli/cli.h"
#include "cli/table.h"

namespace stoker::cli {
namespace {

std::string to_text(const Cell& cell, const stoker::Column& column) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double number = std::get<double>(cell);
  return std::isnan(number) ? "-" : fixed(number, column.decimals);
}

}  // namespace

std::string to_text(const stoker::Table& table) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const stoker::Column& column = table.columns[i];
    const bool is_number = !table.rows.empty() && std::holds_alternative<double>(table.rows.front()[i]);
    columns.push_back({column.unit.empty() ? column.title : column.title + ", " + column.unit, is_number});
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) cells.push_back(to_text(row[i], table.columns[i]));
  }
  std::string text = table.title.empty() ? "" : table.title + "\n";
  text += format_table(columns, rows);
  if (!table.note.empty()) text += table.note + "\n";
  return text;
}

std::string to_text(const Section& section) {
  std::string text = section.title + "\n" + std::string(section.title.size(), '=') + "\n";
  for (const Block& block : section.blocks) {
    if (const auto* paragraph = std::get_if<std::string>(&block)) text += "\n" + *paragraph + "\n";
    if (const auto* table = std::get_if<stoker::Table>(&block)) text += "\n" + to_text(*table);
  }
  return text;
}

}  // namespace stoker::cli
