# Writes the files of a report's page into one C++ file: cmake -D OUTPUT=... -D FOLDER=src/profile/assets
# -D CHART_LIBRARY=chart.min.js (may be empty) -P EmbedAssets.cmake. As arrays of bytes, for compilers limit the length
# of string literals.
set(text "// Made from src/profile/assets by cmake/EmbedAssets.cmake.\n#include \"profile/assets.h\"\n\n")
string(APPEND text "namespace stoker::assets {\n\n")

# NAME becomes a function of assets.h that gives the text of FILE.
function(embed name file)
  set(bytes "")
  if(file)
    file(READ "${file}" bytes HEX)
    if(file MATCHES "\\.js$")
      # Either would end the script element before its time, or change the text that its hash is of.
      file(READ "${file}" content)
      string(TOLOWER "${content}" content)
      string(FIND "${content}" "</script" end_tag)
      string(FIND "${content}" "\r" carriage_return)
      if(NOT end_tag EQUAL -1 OR NOT carriage_return EQUAL -1)
        message(FATAL_ERROR "${file} holds </script or a carriage return and cannot be put into a page")
      endif()
    endif()
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  endif()
  # An array cannot be empty: the zero at the end is not part of the text.
  string(APPEND text "static constexpr unsigned char k_${name}[] = {${bytes}0};\n"
    "std::string_view ${name}() { return {reinterpret_cast<const char*>(k_${name}), sizeof k_${name} - 1}; }\n\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()

embed(report_html ${FOLDER}/report.html)
embed(report_css ${FOLDER}/report.css)
embed(report_js ${FOLDER}/report.js)
embed(report_charts_js ${FOLDER}/report_charts.js)
embed(chart_library "${CHART_LIBRARY}")
string(APPEND text "}  // namespace stoker::assets\n")
file(WRITE "${OUTPUT}" "${text}")
