// How a plan looks to people: a table and a picture.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "graph/op_def.h"
#include "plan/plan.h"

namespace stoker {
namespace {

std::string formatted(const char* format, auto... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 10'000) return formatted("%lld B", static_cast<long long>(bytes));
  if (bytes < 10'000'000) return formatted("%.1f KB", static_cast<double>(bytes) / 1e3);
  return formatted("%.1f MB", static_cast<double>(bytes) / 1e6);
}

std::string place_text(const Plan& plan, const Place& place) {
  switch (place.kind) {
    case Place::Kind::arena: return formatted("@%lld", static_cast<long long>(place.offset));
    case Place::Kind::state: return plan.graph.states[static_cast<std::size_t>(place.index)].name;
    case Place::Kind::input: return plan.graph.inputs[static_cast<std::size_t>(place.index)].name;
    case Place::Kind::constant: return "constant";
    case Place::Kind::none: break;
  }
  return "-";
}

std::string step_line(const Plan& plan, std::size_t number) {
  const Step& step = plan.steps[number];
  const Node& node = plan.graph.nodes[static_cast<std::size_t>(step.node)];
  std::string shapes;
  std::string places;
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    shapes += (i ? " " : "") + to_string(node.outputs[i].shape);
    places += (i ? " " : "") + place_text(plan, step.outputs[i]);
  }
  std::string line = formatted("%5zu  %-8s  %-22s  %-24s  %9.2f  %9s  ", number, to_string(step.phase),
                               node.op->name.c_str(), node.name.substr(0, 24).c_str(), step.cost.flops / 1e6,
                               bytes_text(static_cast<std::int64_t>(step.cost.bytes)).c_str());
  return line + shapes + " -> " + places + "\n";
}

std::string color_of(const Plan& plan, const ArenaTensor& tensor) {
  if (tensor.value.is_none()) return "#b0b0b0";
  switch (plan.graph.node(tensor.value).phase) {
    case Phase::forward: return "#5b8def";
    case Phase::backward: return "#ef8d5b";
    case Phase::update: return "#5bbf7a";
  }
  return "#000000";
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string name_of(const Plan& plan, const ArenaTensor& tensor) {
  if (tensor.value.is_none()) return "scratch";
  const Node& node = plan.graph.node(tensor.value);
  return node.op->name + " " + node.name + " " + to_string(plan.graph.spec(tensor.value));
}

std::string to_string(const Plan& plan) {
  std::string text =
      " step  phase     op                      layer                        MFLOP      bytes  result -> place\n";
  double flops = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    text += step_line(plan, i);
    flops += plan.steps[i].cost.flops;
  }
  text += "\n offset        bytes       steps          tensor\n";
  for (const ArenaTensor& tensor : plan.tensors) {
    text += formatted(" %-12lld  %-10s  %5d..%-5d  ", static_cast<long long>(tensor.offset),
                      bytes_text(tensor.bytes).c_str(), tensor.first, tensor.last);
    text += name_of(plan, tensor) + (tensor.in_place_of >= 0 ? "  (in place)" : "") + "\n";
  }
  text += formatted("\n%zu steps, %.3f GFLOP; arena %s (peak), state %s, inputs %s\n", plan.steps.size(), flops / 1e9,
                    bytes_text(plan.arena_bytes).c_str(), bytes_text(plan.state_bytes).c_str(),
                    bytes_text(plan.input_bytes).c_str());
  return text;
}

std::string to_svg(const Plan& plan) {
  constexpr double kWidth = 1200;
  constexpr double kHeight = 600;
  constexpr double kLeft = 80;
  constexpr double kTop = 40;
  const double steps = std::max<double>(1, static_cast<double>(plan.steps.size()));
  const double bytes = std::max<double>(1, static_cast<double>(plan.arena_bytes));
  std::string svg = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth + kLeft + 20, kHeight + kTop + 50);
  svg += formatted("<text x=\"%g\" y=\"24\" font-size=\"15\">Arena over time: %zu steps, peak %s</text>\n", kLeft,
                   plan.steps.size(), bytes_text(plan.arena_bytes).c_str());
  svg += formatted("<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#f4f4f4\" stroke=\"#888\"/>\n", kLeft,
                   kTop, kWidth, kHeight);
  for (const ArenaTensor& tensor : plan.tensors) {
    const double x = kLeft + kWidth * tensor.first / steps;
    const double width = kWidth * std::min(tensor.last - tensor.first + 1.0, steps - tensor.first) / steps;
    const double height = kHeight * static_cast<double>(tensor.bytes) / bytes;
    const double y = kTop + kHeight - kHeight * static_cast<double>(tensor.offset) / bytes - height;
    svg += formatted(
        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" stroke=\"white\" stroke-width=\"0.3\">",
        x, y, width, height, color_of(plan, tensor).c_str());
    svg += "<title>" + escaped(name_of(plan, tensor)) +
           formatted(", %s, steps %d..%d", bytes_text(tensor.bytes).c_str(), tensor.first, tensor.last) +
           "</title></rect>\n";
  }
  for (int tick = 0; tick <= 4; ++tick) {
    const double share = tick / 4.0;
    svg += formatted("<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%s</text>\n", kLeft - 6,
                     kTop + kHeight * (1 - share) + 4, bytes_text(static_cast<std::int64_t>(bytes * share)).c_str());
    svg += formatted("<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%d</text>\n", kLeft + kWidth * share,
                     kTop + kHeight + 18, static_cast<int>(steps * share));
  }
  svg += formatted(
      "<text x=\"%g\" y=\"%g\">step; blue: made in the forward pass, orange: backward, green: update, grey: "
      "scratch</text>\n",
      kLeft, kTop + kHeight + 38);
  return svg + "</svg>\n";
}

}  // namespace stoker
