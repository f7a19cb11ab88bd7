// A report as JSON: for programs that read results, and for the script that draws a page's plots.
#include <cmath>

#include "profile/report_write.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(double number) {
  if (std::isnan(number)) return nullptr;
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number;
}

Json cell_json(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return number_json(std::get<double>(cell));
}

Json axis_json(const Axis& axis) {
  return {{"title", axis.title}, {"unit", axis.unit}, {"logarithmic", axis.logarithmic}};
}

Json series_json(const Series& series) {
  Json points = Json::array();
  for (const Point& point : series.points)
    points.push_back({{"x", number_json(point.x)}, {"y", number_json(point.y)}, {"label", point.label}});
  return {{"name", series.name}, {"line", series.line}, {"dashed", series.dashed}, {"points", points}};
}

const char* name_of(Chart::Kind kind) {
  switch (kind) {
    case Chart::Kind::bars: return "bars";
    case Chart::Kind::stacked_bars: return "stacked_bars";
    case Chart::Kind::horizontal_bars: return "horizontal_bars";
    case Chart::Kind::waterfall: return "waterfall";
    case Chart::Kind::lines: return "lines";
  }
  return "";
}

Json table_json(const Table& table) {
  Json columns = Json::array();
  for (const Column& column : table.columns) columns.push_back({{"title", column.title}, {"unit", column.unit}});
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row) cells.push_back(cell_json(cell));
    rows.push_back(std::move(cells));
  }
  return {{"kind", "table"},    {"title", table.title}, {"badge", table.badge},
          {"columns", columns}, {"rows", rows},         {"note", table.note}};
}

Json block_json(const ReportBlock& block) {
  if (const auto* text = std::get_if<std::string>(&block)) return {{"kind", "text"}, {"text", *text}};
  if (const auto* table = std::get_if<Table>(&block)) return table_json(*table);
  Json chart = {{"kind", "chart"}};
  chart["chart"] = chart_json(std::get<Chart>(block));
  return chart;
}

}  // namespace

Json chart_json(const Chart& chart) {
  Json series = Json::array();
  for (const Series& one : chart.series) series.push_back(series_json(one));
  return {{"kind", name_of(chart.kind)},
          {"title", chart.title},
          {"badge", chart.badge},
          {"x", axis_json(chart.x)},
          {"y", axis_json(chart.y)},
          {"categories", chart.categories},
          {"series", series},
          {"note", chart.note}};
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const Report& report) {
  Json highlights = Json::array();
  for (const Highlight& one : report.highlights)
    highlights.push_back({{"label", one.label}, {"value", one.value}, {"note", one.note}});
  Json sections = Json::array();
  for (const Section& section : report.sections) {
    Json blocks = Json::array();
    for (const ReportBlock& block : section.blocks) blocks.push_back(block_json(block));
    sections.push_back(
        {{"id", section.id}, {"title", section.title}, {"badge", section.badge}, {"blocks", std::move(blocks)}});
  }
  const Json json = {{"title", report.title},
                     {"subtitle", report.subtitle},
                     {"warnings", report.warnings},
                     {"highlights", highlights},
                     {"sections", sections}};
  return dump_json(json, 1) + "\n";
}

}  // namespace stoker
