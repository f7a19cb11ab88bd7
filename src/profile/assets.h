// The files of src/profile/assets and the charting library, as cmake/EmbedAssets.cmake puts them into the program.
#pragma once

#include <string_view>

namespace stoker::assets {

[[nodiscard]] std::string_view report_html();       // the page's frame, with @NAMES@ to be replaced
[[nodiscard]] std::string_view report_css();        // its style
[[nodiscard]] std::string_view report_js();         // theme, navigation and tables
[[nodiscard]] std::string_view report_charts_js();  // plots
[[nodiscard]] std::string_view chart_library();     // Chart.js; empty where the build did not find it

}  // namespace stoker::assets
