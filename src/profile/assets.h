// The files of src/profile/assets and the charting library, as cmake/EmbedAssets.cmake puts them into the program.
#pragma once

#include <string_view>

namespace stoker::assets {

[[nodiscard]] std::string_view page_html();      // the frame, with @NAMES@ to be replaced
[[nodiscard]] std::string_view page_css();       // its style
[[nodiscard]] std::string_view page_js();        // theme, navigation and tables
[[nodiscard]] std::string_view plots_js();       // needs chart_library()
[[nodiscard]] std::string_view chart_library();  // Chart.js; empty where the build did not find it

}  // namespace stoker::assets
