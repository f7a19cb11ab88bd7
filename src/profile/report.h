// Report: a page of tables and plots as plain data, and its way into one HTML file that needs no network, or into JSON.
// Who makes one need not know how it is drawn.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace stoker {

using Cell = std::variant<std::string, double>;

struct Column {
  std::string title;
  std::string unit;  // "ms", "GFLOP/s"; may be empty
  int decimals = 2;  // of numbers
  bool bar = false;  // numbers are drawn as bars behind the text, too
};

// Sortable by any column. A NaN is shown as a dash.
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note;
};

struct Point {
  double x = 0;
  double y = 0;
  std::string label;  // shown when the mouse is over it
};

struct Series {
  std::string name;
  std::vector<Point> points;  // bars: x is ignored, one for each of Chart::categories
  bool line = true;           // scatter: join the points
  bool dashed = false;        // a prediction or somebody else's figure, not measured here
};

struct Axis {
  std::string title;
  bool logarithmic = false;
};

struct Chart {
  enum class Kind { bars, stacked_bars, horizontal_bars, waterfall, lines };
  Kind kind = Kind::bars;
  std::string title;
  Axis x;
  Axis y;
  std::vector<std::string> categories;  // of bars and waterfalls
  std::vector<Series> series;           // a waterfall has one: the value after each change
  std::string note;
};

using Block = std::variant<std::string, Table, Chart>;  // a string is a paragraph

struct Section {
  std::string id;  // of the HTML element and of the CSV files: "computation"
  std::string title;
  std::vector<Block> blocks;
};

struct Report {
  std::string title;
  std::string subtitle;               // device, date, version
  std::vector<std::string> warnings;  // shown first, set apart: "This OpenCL device is a CPU..."
  std::vector<Section> sections;
};

[[nodiscard]] std::string to_html(const Report& report);
[[nodiscard]] std::string to_json(const Report& report);
[[nodiscard]] std::string to_csv(const Table& table);

}  // namespace stoker
