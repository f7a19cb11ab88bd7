// Reports as HTML, JSON and CSV: what is in them, that text stays text, and numbers that are none. How the page looks
// and behaves is tests/browser's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "profile/assets.h"
#include "profile/report_write.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Stands for Chart.js where its own text does not matter.
constexpr std::string_view kLibrary = "/* a library */";

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// A report with `text` wherever a text can stand.
Report everywhere(const std::string& text) {
  Table table{.title = text, .columns = {{text, text}, {"n"}}, .rows = {{text, 1.0}, {text, text}}, .note = text};
  table.badge = text;
  Chart chart{.title = text, .x = {text, false, text}, .y = {text, false, text}, .categories = {text}, .note = text};
  chart.series = {{text, {{1, 2, text}}}};
  chart.badge = text;
  Chart lines = chart;
  lines.kind = Chart::Kind::lines;
  return {.title = text,
          .subtitle = text,
          .warnings = {text},
          .sections = {{text, text, {text, table, chart, lines}, text}},
          .highlights = {{text, text, text}}};
}

// The tags of a page, from < to >; what is in scripts and styles is no HTML.
std::vector<std::string> tags_of(const std::string& html) {
  std::vector<std::string> tags;
  for (std::size_t at = 0; (at = html.find('<', at)) != std::string::npos;) {
    const std::size_t end = html.find('>', at) + 1;
    tags.push_back(html.substr(at, end - at));
    at = end;
    for (const std::string name : {"script", "style"})
      if (tags.back().rfind("<" + name, 0) == 0) at = html.find("</" + name, end);
  }
  return tags;
}

// The values of an attribute wherever it is given.
std::vector<std::string> values_of(const std::string& html, const std::string& attribute) {
  std::vector<std::string> values;
  for (const std::string& tag : tags_of(html)) {
    const std::size_t at = tag.find(" " + attribute + "=\"");
    if (at == std::string::npos) continue;
    const std::size_t begin = at + attribute.size() + 3;
    values.push_back(tag.substr(begin, tag.find('"', begin) - begin));
  }
  return values;
}

// The element that is open at the end, or the first end tag that does not fit.
std::string unbalanced(const std::string& html) {
  const std::set<std::string> childless{"!doctype", "meta", "link"};
  std::vector<std::string> open;
  for (const std::string& tag : tags_of(html)) {
    const bool closing = tag[1] == '/';
    const std::string name = tag.substr(closing ? 2 : 1, tag.find_first_of(" >") - (closing ? 2 : 1));
    if (childless.count(name) > 0) continue;
    if (closing && (open.empty() || open.back() != name))
      return tag + (open.empty() ? "" : " in <" + open.back() + ">");
    if (closing)
      open.pop_back();
    else
      open.push_back(name);
  }
  return open.empty() ? "" : "left open: " + open.back();
}

Json charts_in(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"stoker-charts\">";
  const std::size_t from = html.find(begin) + begin.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from));
}

TEST(ReportHtml, ShowsWarningsBeforeSectionsAndLinksToEachSection) {
  const Report report{.title = "The title",
                      .subtitle = "a device",
                      .warnings = {"a warning"},
                      .sections = {{"first", "First part", {"some text"}}, {"second", "Second part", {}}},
                      .highlights = {{"label", "12 %", "about it"}}};
  const std::string html = to_html(report);
  EXPECT_EQ(html.rfind("<!doctype html>", 0), 0U);
  std::size_t at = 0;
  for (const char* part :
       {"<title>The title</title>", "<h1>The title</h1>", "a device", "href=\"#first\"", "href=\"#second\"",
        "a warning", "12 %", "id=\"first\"", "<h2", "First part", "some text", "id=\"second\"", "</html>"}) {
    const std::size_t next = html.find(part, at);
    ASSERT_NE(next, std::string::npos) << part << " is missing, or not in its place";
    at = next;
  }
  EXPECT_EQ(unbalanced(html), "");
}

TEST(ReportHtml, IsOneFileThatAsksForNothingElse) {
  const std::string html = to_html(everywhere("x"));
  EXPECT_TRUE(has(html, "Content-Security-Policy\" content=\"default-src 'none';"));
  EXPECT_TRUE(values_of(html, "src").empty());
  for (const std::string& address : values_of(html, "href"))
    EXPECT_TRUE(address[0] == '#' || address.rfind("data:", 0) == 0) << address;
  EXPECT_FALSE(has(html, "@import"));
}

TEST(ReportHtml, KeepsTextAsText) {
  const std::string nasty =
      "</script></table><script>alert(1)</script><img src=x onerror='a()'>\" onclick=\"b()\"&amp;";
  const std::string html = to_html(everywhere(nasty), kLibrary);
  const std::string harmless = to_html(everywhere("x"), kLibrary);
  EXPECT_EQ(count_of(html, "<script"), count_of(harmless, "<script"));
  EXPECT_EQ(count_of(html, "</script"), count_of(harmless, "</script"));
  EXPECT_EQ(count_of(html, "</table"), count_of(harmless, "</table"));
  EXPECT_FALSE(has(html, "<img"));
  EXPECT_TRUE(values_of(html, "onclick").empty());
  EXPECT_TRUE(has(html, "&amp;amp;")) << "text that looks escaped must be escaped as well";
  EXPECT_EQ(unbalanced(html), "");
  const Json charts = charts_in(html);
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[0]["title"], nasty);
  EXPECT_EQ(charts[0]["series"][0]["points"][0]["label"], nasty);
}

TEST(ReportHtml, DoesNotFillInNamesThatStandInTexts) {
  const std::string html = to_html(everywhere("@STYLE@ @SECTIONS@ a@b"));
  EXPECT_EQ(count_of(html, "</style>"), 1U);
  EXPECT_TRUE(has(html, "<h1>@STYLE@ @SECTIONS@ a@b</h1>"));
}

TEST(ReportHtml, GivesEverySectionAnElementNameOfItsOwn) {
  const std::string html = to_html(
      {.sections = {
           {"a b", "1", {}}, {"a-b", "2", {}}, {"\"", "3", {}}, {"stoker-main", "4", {}}, {"a-b-title", "5", {}}}});
  const std::vector<std::string> ids = values_of(html, "id");
  for (const std::string& id : ids)
    EXPECT_TRUE(!id.empty() && std::all_of(id.begin(), id.end(), [](char c) { return std::isalnum(c) || c == '-'; }))
        << id;
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(count_of(html, "<section id="), 5U);
}

TEST(ReportHtml, WritesNumbersToTheRightWithTheirUnitsAndAllDigitsToSortBy) {
  const Table table{.title = "t",
                    .columns = {{"op"}, {"time", "ms", 2, true}, {"count", "", 0}},
                    .rows = {{"a", 1.0 / 3, 1234567.0}, {"b", 0.5, 2.0}}};
  const std::string html = table_html(table);
  EXPECT_TRUE(has(
      html, "<th scope=\"col\" class=\"number\"><span class=\"name\">time</span> <span class=\"unit\">ms</span></th>"));
  EXPECT_TRUE(has(html, "<th scope=\"row\">a</th>"));
  EXPECT_TRUE(has(html, "data-value=\"0.3333333333333333\" style=\"--bar:66.67%\">0.33</td>")) << html;
  EXPECT_TRUE(has(html, "--bar:100.00%\">0.50</td>"));
  EXPECT_TRUE(has(html, "<td class=\"number\" data-value=\"1234567\">1,234,567</td>"));
  EXPECT_TRUE(has(html, "<caption>t</caption>"));
  const Table shares{.columns = {{"a", "%", 1, true}}, .rows = {{25.0}, {50.0}}};
  EXPECT_TRUE(has(table_html(shares), "--bar:50.00%\">50.0<")) << "shares are drawn as parts of 100 %";
}

TEST(ReportHtml, FormatsNumbersForReaders) {
  EXPECT_EQ(format_number(1234.5, 1), "1,234.5");
  EXPECT_EQ(format_number(-123456, 0), "-123,456");
  EXPECT_EQ(format_number(-123, 0), "-123");
  EXPECT_EQ(format_number(999.999, 2), "1,000.00");
  EXPECT_EQ(format_number(0, 2), "0.00");
  EXPECT_EQ(format_number(-0.0, 2), "0.00");
  EXPECT_EQ(format_number(0.001, 2), "< 0.01");
  EXPECT_EQ(format_number(-0.001, 2), "> -0.01");
  EXPECT_EQ(format_number(0.006, 2), "0.01");
  EXPECT_EQ(format_number(kNan, 2), "\u2013");
  EXPECT_EQ(format_number(kInfinity, 2), "\u221E");
  EXPECT_EQ(format_number(-kInfinity, 2), "-\u221E");
  EXPECT_EQ(format_number(1e300, 2), "1.000e+300");
  EXPECT_EQ(format_number(123456.7, -1), "123,457");
  EXPECT_EQ(format_number(0.012345, -1), "0.01235");
  EXPECT_EQ(format_number(2.5, -1), "2.500");
  EXPECT_EQ(format_number(2, -1), "2");
  EXPECT_EQ(format_number(1.5e-9, -1), "1.500e-09");
}

TEST(ReportHtml, TakesTablesThatAreEmptyOrRagged) {
  EXPECT_TRUE(has(table_html({.title = "t", .columns = {{"a"}, {"b"}}}), "<td colspan=\"2\">nothing to show</td>"));
  EXPECT_EQ(unbalanced(table_html({})), "");
  const std::string ragged = table_html({.columns = {{"a"}, {"b"}}, .rows = {{}, {1.0}, {1.0, 2.0, 3.0}}});
  EXPECT_EQ(count_of(ragged, "<tr>"), 4U);
  EXPECT_EQ(count_of(ragged, "</td>"), 3U);  // the second column; the first one's cells are headings
  const Table bars{.columns = {{"a", "", 1, true}}, .rows = {{kNan}, {kInfinity}, {0.0}}};
  EXPECT_FALSE(has(table_html(bars), "--bar")) << "nothing to compare with";
  EXPECT_EQ(unbalanced(to_html({})), "");
}

TEST(ReportHtml, LetsLongTextsHaveSeveralLines) {
  const std::string text(60, 'x');
  const std::string html = table_html({.columns = {{"a"}, {"b"}}, .rows = {{"short", text}, {"short", "beside it"}}});
  EXPECT_TRUE(has(html, "<td class=\"long\">" + text)) << html;
  EXPECT_TRUE(has(html, "<td class=\"long\">beside it"));
  EXPECT_TRUE(has(html, "<th scope=\"row\">short"));
}

TEST(ReportHtml, SetsParagraphsListsCodeAndBold) {
  EXPECT_EQ(text_html("one\ntwo\n\nthree"), "<p>one\ntwo</p>\n<p>three</p>\n");
  EXPECT_EQ(text_html("do:\n- `a<b`\n- **c**\nend"),
            "<p>do:</p>\n<ul><li><code>a&lt;b</code></li><li><strong>c</strong></li></ul>\n<p>end</p>\n");
  EXPECT_EQ(text_html("2*3 ** 4 ` 5"), "<p>2*3 ** 4 ` 5</p>\n");
  EXPECT_EQ(text_html("**** ``"), "<p>**** ``</p>\n");
  EXPECT_EQ(text_html(""), "");
}

TEST(ReportHtml, HasTheFiguresOfEachPlotAsATable) {
  Chart bars{.x = {"net"}, .y = {"time", false, "ms"}, .categories = {"a", "b"}};
  bars.series = {{"cpu", {{0, 1, ""}, {0, 2, ""}}}, {"device", {{0, 3, ""}}}};
  const Table table = chart_table(bars);
  ASSERT_EQ(table.columns.size(), 3U);
  EXPECT_EQ(table.columns[2].title, "device");
  EXPECT_EQ(table.columns[2].unit, "ms");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(std::get<double>(table.rows[0][2]), 3);
  EXPECT_TRUE(std::isnan(std::get<double>(table.rows[1][2]))) << "a value that was not given";
  Chart lines{.kind = Chart::Kind::lines};
  lines.series = {{"s", {{1, 2, "p"}, {3, 4, ""}}}};
  EXPECT_EQ(chart_table(lines).rows.size(), 2U);
}

TEST(ReportHtml, SaysSoIfTheBuildHasNoChartingLibrary) {
  const Report report{.sections = {{"s", "S", {Chart{.title = "c", .categories = {"a"}}}}}};
  const std::string with = to_html(report, kLibrary);
  const std::string without = to_html(report, "");
  EXPECT_TRUE(has(with, "<canvas"));
  EXPECT_TRUE(has(with, kLibrary));
  EXPECT_FALSE(has(with, "plots were left out"));
  EXPECT_FALSE(has(without, "<canvas"));
  EXPECT_TRUE(has(without, "plots were left out"));
  EXPECT_TRUE(has(without, "<details open>")) << "the figures are all there is";
  EXPECT_FALSE(has(to_html({.title = "no plot"}, kLibrary), kLibrary)) << "nothing to draw";
}

TEST(ReportHtml, HoldsChartJsAndItsLicence) {
  if (assets::chart_library().empty()) GTEST_SKIP() << "Chart.js was not found by this build: reports have no plots";
  const std::string html = to_html(everywhere("x"));
  EXPECT_TRUE(has(html, "Chart.js v"));
  EXPECT_TRUE(has(html, "MIT License"));
}

TEST(ReportJson, HoldsEverythingThatIsInTheReport) {
  const Json json = Json::parse(to_json(everywhere("x")));
  EXPECT_EQ(json["title"], "x");
  EXPECT_EQ(json["warnings"], Json::array({"x"}));
  EXPECT_EQ(json["highlights"][0]["value"], "x");
  const Json& section = json["sections"][0];
  EXPECT_EQ(section["badge"], "x");
  const Json& blocks = section["blocks"];
  ASSERT_EQ(blocks.size(), 4U);
  EXPECT_EQ(blocks[0], (Json{{"kind", "text"}, {"text", "x"}}));
  EXPECT_EQ(blocks[1]["kind"], "table");
  EXPECT_EQ(blocks[1]["columns"][0], (Json{{"title", "x"}, {"unit", "x"}}));
  EXPECT_EQ(blocks[1]["rows"], Json::parse(R"([["x", 1.0], ["x", "x"]])"));
  EXPECT_EQ(blocks[2]["kind"], "chart");
  EXPECT_EQ(blocks[2]["chart"]["kind"], "bars");
  EXPECT_EQ(blocks[3]["chart"]["kind"], "lines");
  EXPECT_EQ(blocks[3]["chart"]["series"][0]["points"][0], (Json{{"x", 1.0}, {"y", 2.0}, {"label", "x"}}));
}

TEST(ReportJson, TakesNumbersThatAreNoneAndBytesThatAreNoText) {
  Table table{.columns = {{"a"}}, .rows = {{kNan}, {kInfinity}, {-kInfinity}, {0.1}, {"\xff\xfe"}}};
  const Json json = Json::parse(to_json({.title = "\xc3", .sections = {{"s", "S", {table}}}}));
  const Json& rows = json["sections"][0]["blocks"][0]["rows"];
  EXPECT_TRUE(rows[0][0].is_null());
  EXPECT_EQ(rows[1][0], "Infinity");
  EXPECT_EQ(rows[2][0], "-Infinity");
  EXPECT_EQ(rows[3][0], 0.1);
  EXPECT_EQ(json["title"], "\uFFFD");
  Chart chart{.title = "\xff", .categories = {"a"}};
  chart.series = {{"s", {{kNan, kInfinity, ""}}}};
  EXPECT_TRUE(
      charts_in(to_html({.sections = {{"s", "S", {chart}}}}, kLibrary))[0]["series"][0]["points"][0]["x"].is_null());
}

TEST(ReportCsv, QuotesWhatNeedsItAndLeavesMissingNumbersEmpty) {
  const Table table{.columns = {{"op, kind"}, {"time", "ms"}}, .rows = {{"say \"x\"", 0.1}, {"plain", kNan}}};
  EXPECT_EQ(to_csv(table), "\"op, kind\",time (ms)\r\n\"say \"\"x\"\"\",0.1\r\nplain,\r\n");
}

}  // namespace
}  // namespace stoker
