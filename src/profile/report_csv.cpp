// A table as comma-separated values, quoted where RFC 4180 asks for it; numbers with all their digits.
#include <charconv>
#include <cmath>

#include "profile/report.h"

namespace stoker {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string field(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return quoted(*text);
  const double number = std::get<double>(cell);
  if (std::isnan(number)) return {};
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number);
  return {digits, end.ptr};
}

}  // namespace

std::string to_csv(const Table& table) {
  std::string csv;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    csv += (i > 0 ? "," : "") + quoted(column.unit.empty() ? column.title : column.title + " (" + column.unit + ")");
  }
  csv += "\r\n";
  for (const std::vector<Cell>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) csv += (i > 0 ? "," : "") + field(row[i]);
    csv += "\r\n";
  }
  return csv;
}

}  // namespace stoker
