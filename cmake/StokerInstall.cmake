# The installed package: find_package(Stoker CONFIG) gives Stoker::stoker.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Stoker)

install(TARGETS stoker EXPORT StokerTargets)
if(TARGET stoker_cli)
  install(TARGETS stoker_cli)
endif()
install(DIRECTORY include/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT StokerTargets NAMESPACE Stoker:: DESTINATION ${package_dir})
configure_package_config_file(cmake/StokerConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/StokerConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/StokerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/StokerConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/StokerConfigVersion.cmake
  DESTINATION ${package_dir})
