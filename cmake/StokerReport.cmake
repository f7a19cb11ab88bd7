# What reports are made of: the files in src/profile/assets and Chart.js, embedded into ${embedded_assets}. Reports of a
# build without Chart.js show tables in place of plots.
find_file(STOKER_CHART_JS NAMES chart.min.js chart.umd.min.js chart.umd.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
  DOC "Chart.js, 3 or 4, as one minified file (Debian: libjs-chart.js)"
  NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
if(NOT STOKER_CHART_JS)
  set(chart_library "")
  message(STATUS "No Chart.js: reports will have no plots. Install libjs-chart.js, or give -DSTOKER_CHART_JS=FILE")
elseif(NOT EXISTS ${STOKER_CHART_JS})
  message(FATAL_ERROR "STOKER_CHART_JS: there is no file ${STOKER_CHART_JS}")
else()
  set(chart_library ${STOKER_CHART_JS})
endif()

set(assets_dir ${CMAKE_CURRENT_SOURCE_DIR}/src/profile/assets)
file(GLOB asset_files CONFIGURE_DEPENDS ${assets_dir}/*)
set(embedded_assets ${CMAKE_CURRENT_BINARY_DIR}/embedded_assets.cpp)
add_custom_command(OUTPUT ${embedded_assets}
  COMMAND ${CMAKE_COMMAND} -D OUTPUT=${embedded_assets} -D FOLDER=${assets_dir} -D "CHART_LIBRARY=${chart_library}"
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/EmbedAssets.cmake
  DEPENDS ${asset_files} ${chart_library} cmake/EmbedAssets.cmake
  COMMENT "Embedding the parts of reports" VERBATIM)
