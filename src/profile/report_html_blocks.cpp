// The parts of a report's page: text, numbers and tables as HTML. A table is complete without the page's script, which
// only sorts it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "profile/report_write.h"

namespace stoker {
namespace {

constexpr const char* kDash = "\u2013";
constexpr double kLargestFixed = 1e15;  // beyond, digits are noise: scientific notation
constexpr double kSmallestFixed = 1e-6;
constexpr int kSignificantDigits = 4;
constexpr int kMostDecimals = 12;
constexpr std::size_t kLongText = 36;  // in bytes: longer ones may have several lines

std::string digits_of(double number, std::chars_format format, int precision) {
  char digits[64];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number, format, precision);
  return {digits, end.ptr};
}

// With all its digits, as the script reads it back.
std::string exact(double number) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number);
  return {digits, end.ptr};
}

// 1234567.5 -> 1,234,567.5
std::string with_commas(std::string digits) {
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  std::size_t at = std::min(digits.find('.'), digits.size());
  while (at > first + 3) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

// 4.000 -> 4; 4.500 stays: the zeros are significant.
std::string without_zero_fraction(const std::string& digits) {
  const std::size_t point = digits.find('.');
  return point != std::string::npos && digits.find_first_not_of('0', point + 1) == std::string::npos
             ? digits.substr(0, point)
             : digits;
}

// `code` and **bold**; a mark without its partner stands for itself.
std::string inline_html(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const bool code = text[0] == '`';
    const bool bold = text.substr(0, 2) == "**";
    const std::string_view mark = text.substr(0, code ? 1 : 2);
    const std::size_t end = code || bold ? text.find(mark, mark.size()) : std::string_view::npos;
    if (end != std::string_view::npos && end > mark.size()) {
      const std::string inner = escape_html(text.substr(mark.size(), end - mark.size()));
      html += code ? "<code>" + inner + "</code>" : "<strong>" + inner + "</strong>";
      text.remove_prefix(end + mark.size());
      continue;
    }
    const std::size_t plain = std::min(text.find_first_of("`*", 1), text.size());
    html += escape_html(text.substr(0, plain));
    text.remove_prefix(plain);
  }
  return html;
}

struct ColumnFacts {
  bool numeric = false;
  bool wraps = false;  // has a text too long for one line
  double largest = 0;  // magnitude, of finite numbers
};

ColumnFacts facts_of(const Table& table, std::size_t column) {
  ColumnFacts facts;
  for (const std::vector<Cell>& row : table.rows) {
    if (column >= row.size()) continue;
    if (const auto* text = std::get_if<std::string>(&row[column])) {
      facts.wraps = facts.wraps || text->size() > kLongText;
      continue;
    }
    facts.numeric = true;
    const double number = std::fabs(std::get<double>(row[column]));
    if (std::isfinite(number)) facts.largest = std::max(facts.largest, number);
  }
  return facts;
}

std::string head_html(const Column& column, const ColumnFacts& facts) {
  std::string html = std::string("<th scope=\"col\"") + (facts.numeric ? " class=\"number\"" : "") + ">";
  html += "<span class=\"name\">" + escape_html(column.title) + "</span>";
  if (!column.unit.empty()) html += " <span class=\"unit\">" + escape_html(column.unit) + "</span>";
  return html + "</th>";
}

std::string cell_html(const Cell& cell, const Column& column, const ColumnFacts& facts, bool first) {
  const std::string tag = first ? "th scope=\"row\"" : "td";
  const std::string end = first ? "</th>" : "</td>";
  if (const auto* text = std::get_if<std::string>(&cell)) {
    const char* kind = facts.wraps ? " class=\"long\"" : facts.numeric ? " class=\"number\"" : "";
    return "<" + tag + kind + ">" + escape_html(*text) + end;
  }
  const double number = std::get<double>(cell);
  std::string html = "<" + tag + " class=\"number";
  const bool bar = column.bar && std::isfinite(number) && facts.largest > 0;
  if (bar) html += " bar";
  html += "\"";
  if (!std::isnan(number)) html += " data-value=\"" + exact(number) + "\"";
  if (bar) {
    const double whole = column.unit == "%" ? std::max(100.0, facts.largest) : facts.largest;
    const double percent = 100 * std::fabs(number) / whole;
    html += " style=\"--bar:" + digits_of(percent, std::chars_format::fixed, 2) + "%\"";
  }
  return html + ">" + escape_html(format_number(number, column.decimals)) + end;
}

std::string axis_name(const Axis& axis, const char* otherwise) { return axis.title.empty() ? otherwise : axis.title; }

}  // namespace

std::string escape_html(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      case '\0': html += "\uFFFD"; break;
      default: html += c;
    }
  }
  return html;
}

std::string format_number(double number, int decimals) {
  if (std::isnan(number)) return kDash;
  if (std::isinf(number)) return number > 0 ? "\u221E" : "-\u221E";
  const double size = std::fabs(number);
  if (number == 0) number = 0;  // never "-0"
  if (size >= kLargestFixed || (decimals < 0 && size > 0 && size < kSmallestFixed))
    return digits_of(number, std::chars_format::scientific, kSignificantDigits - 1);
  if (decimals < 0) {
    const int before = size > 0 ? static_cast<int>(std::floor(std::log10(size))) : 0;
    const int after = std::clamp(kSignificantDigits - 1 - before, 0, kMostDecimals);
    return with_commas(without_zero_fraction(digits_of(number, std::chars_format::fixed, after)));
  }
  decimals = std::min(decimals, kMostDecimals);
  const double unit = std::pow(10.0, -decimals);
  if (size > 0 && size < unit / 2)
    return (number > 0 ? "< " : "> -") + digits_of(unit, std::chars_format::fixed, decimals);
  return with_commas(digits_of(number, std::chars_format::fixed, decimals));
}

std::string text_html(const std::string& text) {
  std::string html;
  const char* open = nullptr;  // the element that lines are being added to
  const auto enter = [&](const char* element) {
    if (open != nullptr) html += std::string("</") + open + ">\n";
    open = element;
    if (element != nullptr) html += std::string("<") + element + ">";
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const bool item = line.substr(0, 2) == "- ";
    const char* element = line.empty() ? nullptr : item ? "ul" : "p";
    const bool same = open != nullptr && element != nullptr && std::string_view(open) == element;
    if (!same) enter(element);
    if (item) html += "<li>" + inline_html(line.substr(2)) + "</li>";
    if (!item && !line.empty()) html += (same ? "\n" : "") + inline_html(line);
  }
  enter(nullptr);
  return html;
}

std::string badge_html(const std::string& badge) {
  return badge.empty() ? "" : " <span class=\"badge\">" + escape_html(badge) + "</span>";
}

std::string table_html(const Table& table) {
  std::vector<ColumnFacts> facts;
  std::string html =
      "<table>\n<caption>" + escape_html(table.title) + badge_html(table.badge) + "</caption>\n<thead><tr>";
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    facts.push_back(facts_of(table, i));
    html += head_html(table.columns[i], facts[i]);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      html += cell_html(i < row.size() ? row[i] : Cell(""), table.columns[i], facts[i], i == 0);
    html += "</tr>\n";
  }
  if (table.rows.empty())
    html += "<tr class=\"empty\"><td colspan=\"" + std::to_string(std::max<std::size_t>(1, table.columns.size())) +
            "\">nothing to show</td></tr>\n";
  html += "</tbody>\n</table>\n";
  const std::string label = escape_html(table.title.empty() ? "Table" : table.title);
  html = "<div class=\"table\">\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + label + "\">\n" +
         html + "</div>\n";
  if (!table.note.empty()) html += "<div class=\"note\">" + text_html(table.note) + "</div>\n";
  return html + "</div>\n";
}

Table chart_table(const Chart& chart) {
  const double missing = std::numeric_limits<double>::quiet_NaN();
  Table table;
  if (chart.kind == Chart::Kind::lines) {
    table.columns = {{"Series"},
                     {"Point"},
                     {axis_name(chart.x, "x"), chart.x.unit, -1},
                     {axis_name(chart.y, "y"), chart.y.unit, -1}};
    for (const Series& series : chart.series)
      for (const Point& point : series.points) table.rows.push_back({series.name, point.label, point.x, point.y});
    return table;
  }
  table.columns.push_back({axis_name(chart.x, "")});
  for (const Series& series : chart.series)
    table.columns.push_back({series.name.empty() ? axis_name(chart.y, "Value") : series.name, chart.y.unit, -1});
  for (std::size_t i = 0; i < chart.categories.size(); ++i) {
    std::vector<Cell> row{chart.categories[i]};
    for (const Series& series : chart.series) row.emplace_back(i < series.points.size() ? series.points[i].y : missing);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace stoker
