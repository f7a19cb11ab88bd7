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
  int decimals = 2;  // of numbers; -1 gives four significant digits
  bool bar = false;  // numbers are drawn as bars behind the text, too
};

// Sortable by any column. A NaN is shown as a dash.
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note;
  std::string badge;  // beside the title: "prediction", "abstract", "secondary, unverified"
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
  bool logarithmic = false;  // values of zero and below are then left out
  std::string unit;          // behind the title and behind each value that is hovered
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
  std::string badge;  // as a table's
};

// A string is text: an empty line begins a paragraph, lines that begin with "- " are a list, `code` and **bold** are
// set so. Notes and warnings are written in the same way.
using ReportBlock = std::variant<std::string, Table, Chart>;

struct Section {
  std::string id;  // of the HTML element and of the CSV files: "computation"
  std::string title;
  std::vector<ReportBlock> blocks;
  std::string badge;  // as a table's; a section with one is set apart
};

// A figure that is to be seen first: "Data movement", "12 %", "of a step; the study: 91 %".
struct Highlight {
  std::string label;
  std::string value;
  std::string note;
};

struct Report {
  std::string title;
  std::string subtitle;               // device, date, version
  std::vector<std::string> warnings;  // shown first, set apart: "This OpenCL device is a CPU..."
  std::vector<Section> sections;
  std::vector<Highlight> highlights;  // shown below the warnings
};

// One page that needs nothing else: style, script and charting library are in it. Text is escaped. A build without the
// charting library gives a page with the figures of each plot as a table, which says so.
[[nodiscard]] std::string to_html(const Report& report);
// Everything in the report; a NaN is null, infinities are the strings "Infinity" and "-Infinity".
[[nodiscard]] std::string to_json(const Report& report);
[[nodiscard]] std::string to_csv(const Table& table);

}  // namespace stoker
