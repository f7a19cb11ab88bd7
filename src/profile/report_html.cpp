// A report as one page of HTML. The page forbids itself every connection and every script but those that are in it, by
// their hashes, so that text which slipped through the escaping could still not run.
#include <algorithm>
#include <set>
#include <utility>

#include "base/sha256.h"
#include "profile/assets.h"
#include "profile/report_write.h"

namespace stoker {
namespace {

std::string base64(const Sha256& hash) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < hash.size(); i += 3) {
    const auto byte = [&](std::size_t j) { return j < hash.size() ? std::to_integer<unsigned>(hash[j]) : 0U; };
    const unsigned bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (unsigned k = 0; k < 4; ++k) text += i + k <= hash.size() ? kLetters[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// The page's parts, as they are collected.
struct Page {
  std::string_view library;  // to draw with; may be empty
  std::string navigation;
  std::string sections;
  nlohmann::ordered_json charts = nlohmann::ordered_json::array();
  std::set<std::string> ids{"stoker-main", "stoker-theme", "stoker-tooltip", "stoker-charts"};
};

// `id` as an element's name, told apart from those before it.
std::string unique_id(Page& page, const std::string& id) {
  std::string plain;
  for (const char c : id) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    plain += good ? c : '-';
  }
  if (plain.empty()) plain = "section";
  std::string name = plain;
  for (int i = 2; !page.ids.insert(name).second; ++i) name = plain + "-" + std::to_string(i);
  return name;
}

std::string chart_html(Page& page, const Chart& chart) {
  const std::string number = std::to_string(page.charts.size());
  page.charts.push_back(chart_json(chart));
  const bool drawn = !page.library.empty();
  std::string html =
      "<figure class=\"chart\">\n<figcaption>" + escape_html(chart.title) + badge_html(chart.badge) + "</figcaption>\n";
  if (drawn)
    html += "<div class=\"plot\"><canvas data-chart=\"" + number + "\" role=\"img\" aria-label=\"" +
            escape_html(chart.title) + ". The figures follow as a table.\"></canvas></div>\n";
  if (!chart.note.empty()) html += "<div class=\"note\">" + text_html(chart.note) + "</div>\n";
  html += std::string("<details") + (drawn ? "" : " open") + "><summary>Figures</summary>\n";
  return html + table_html(chart_table(chart)) + "</details>\n</figure>\n";
}

std::string block_html(Page& page, const ReportBlock& block) {
  if (const auto* text = std::get_if<std::string>(&block))
    return "<div class=\"text\">" + text_html(*text) + "</div>\n";
  if (const auto* table = std::get_if<Table>(&block)) return table_html(*table);
  return chart_html(page, std::get<Chart>(block));
}

void add_section(Page& page, const Section& section) {
  const std::string id = unique_id(page, section.id);
  const std::string title_id = unique_id(page, id + "-title");
  page.navigation += "<li><a href=\"#" + id + "\">" + escape_html(section.title) + "</a></li>\n";
  page.sections += "<section id=\"" + id + "\" class=\"part" + (section.badge.empty() ? "" : " apart") +
                   "\" aria-labelledby=\"" + title_id + "\">\n<h2 id=\"" + title_id + "\">" +
                   escape_html(section.title) + badge_html(section.badge) + "</h2>\n";
  for (const ReportBlock& block : section.blocks) page.sections += block_html(page, block);
  page.sections += "</section>\n";
}

std::string warnings_html(const Report& report) {
  if (report.warnings.empty()) return {};
  std::string html = "<section class=\"warnings\" role=\"note\" aria-label=\"Warnings\">\n";
  for (const std::string& warning : report.warnings)
    html += "<div class=\"warning\">" + text_html(warning) + "</div>\n";
  return html + "</section>\n";
}

constexpr std::size_t kLongValue = 12;  // in bytes: set smaller, to stay on one line

std::string highlights_html(const Report& report) {
  if (report.highlights.empty()) return {};
  std::string html = "<dl class=\"highlights\">\n";
  for (const Highlight& one : report.highlights) {
    const char* value = one.value.size() > kLongValue ? "value long" : "value";
    html += "<div><dt>" + escape_html(one.label) + "</dt><dd class=\"" + value + "\">" + escape_html(one.value) +
            "</dd><dd class=\"about\">" + escape_html(one.note) + "</dd></div>\n";
  }
  return html + "</dl>\n";
}

// In a script element "<" would be the beginning of its end.
std::string in_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;) json.replace(at, 1, "\\u003c");
  return json;
}

struct Scripts {
  std::string elements;
  std::string hashes;  // for the page's Content-Security-Policy

  void add(std::string_view script) {
    elements += "<script>" + std::string(script) + "</script>\n";
    hashes += " 'sha256-" + base64(sha256(script)) + "'";
  }
};

Scripts scripts_of(const Page& page) {
  Scripts scripts;
  if (!page.charts.empty() && !page.library.empty()) {
    scripts.elements = "<script type=\"application/json\" id=\"stoker-charts\">" +
                       in_script(dump_json(page.charts, -1)) + "</script>\n";
    scripts.add(page.library);
    scripts.add(assets::plots_js());
  }
  scripts.add(assets::page_js());
  return scripts;
}

// Replaces @NAMES@ in one pass, so that a text which holds such a name stays as it is.
std::string filled(std::string_view frame, const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string text;
  while (!frame.empty()) {
    const std::size_t at = std::min(frame.find('@'), frame.size());
    text += frame.substr(0, at);
    frame.remove_prefix(at);
    std::size_t used = std::min<std::size_t>(1, frame.size());
    std::string_view value = frame.substr(0, used);
    for (const auto& [name, part] : parts)
      if (frame.substr(0, name.size()) == name) {
        value = part;
        used = name.size();
      }
    text += value;
    frame.remove_prefix(used);
  }
  return text;
}

}  // namespace

std::string to_html(const Report& report) { return to_html(report, assets::chart_library()); }

std::string to_html(const Report& report, std::string_view library) {
  Page page{library};
  for (const Section& section : report.sections) add_section(page, section);
  const Scripts scripts = scripts_of(page);
  std::string footer = "Made by Stoker.";
  if (!page.charts.empty())
    footer += library.empty()
                  ? " This build of it has no charting library: plots were left out, their figures stand as tables."
                  : " Plots by Chart.js (MIT licence).";
  return filled(assets::page_html(), {{"@TITLE@", escape_html(report.title)},
                                      {"@SUBTITLE@", escape_html(report.subtitle)},
                                      {"@HASHES@", scripts.hashes},
                                      {"@STYLE@", std::string(assets::page_css())},
                                      {"@NAVIGATION@", page.navigation},
                                      {"@WARNINGS@", warnings_html(report)},
                                      {"@HIGHLIGHTS@", highlights_html(report)},
                                      {"@SECTIONS@", page.sections},
                                      {"@FOOTER@", footer},
                                      {"@SCRIPTS@", scripts.elements}});
}

}  // namespace stoker
