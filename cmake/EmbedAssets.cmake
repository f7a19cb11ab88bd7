# Writes the files of a report's page into one C++ file: cmake -D OUTPUT=... -D FOLDER=src/profile/assets
# -D CHART_LIBRARY=chart.min.js (may be empty) -P EmbedAssets.cmake. As arrays of bytes, for compilers limit the length
# of string literals.
set(text "// Made from src/profile/assets by cmake/EmbedAssets.cmake.\n#include \"profile/assets.h\"\n\n")
string(APPEND text "namespace stoker::assets {\n\n")

# NAME becomes a function of assets.h that gives the text of the files that follow, joined.
function(embed name)
  set(bytes "")
  foreach(file IN LISTS ARGN)
    file(READ "${file}" content HEX)
    string(APPEND bytes "${content}")
    if(file MATCHES "\\.js$")
      # Either would end the script element before its time, or change the text that its hash is of.
      file(READ "${file}" content)
      if(content MATCHES "</[Ss][Cc][Rr][Ii][Pp][Tt]|\r")
        message(FATAL_ERROR "${file} holds </script or a carriage return and cannot be put into a page")
      endif()
    endif()
  endforeach()
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  # An array cannot be empty: the zero at the end is not part of the text.
  string(APPEND text "static constexpr unsigned char k_${name}[] = {${bytes}0};\n"
    "std::string_view ${name}() { return {reinterpret_cast<const char*>(k_${name}), sizeof k_${name} - 1}; }\n\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()

embed(page_html ${FOLDER}/page.html)
embed(page_css ${FOLDER}/page.css)
embed(page_js ${FOLDER}/page.js)
embed(plots_js ${FOLDER}/plots.js ${FOLDER}/plot_bars.js ${FOLDER}/plot_waterfall.js ${FOLDER}/plot_lines.js
      ${FOLDER}/plot_all.js)
embed(chart_library ${CHART_LIBRARY})
string(APPEND text "}  // namespace stoker::assets\n")
file(WRITE "${OUTPUT}" "${text}")
