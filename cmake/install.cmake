# What `cmake --install` gives: headers, static libraries, and how to find them (CMake package and pkg-config). The
# modules are those that facetheory_module() made, so that a new layer joins by itself; a new foreign library must be
# named here and in facetheoryConfig.cmake.in.
include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY FACETHEORY_MODULES)

# All of it, for programs that do not care which layers they use.
add_library(facetheory_all INTERFACE)
add_library(facetheory::facetheory ALIAS facetheory_all)
set_target_properties(facetheory_all PROPERTIES EXPORT_NAME facetheory)
target_link_libraries(facetheory_all INTERFACE ${modules})

install(TARGETS ${modules} facetheory_all EXPORT facetheory
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(module IN LISTS modules)
  string(REPLACE "facetheory_" "" layer ${module})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${layer}/
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/facetheory/${layer}
          FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE)
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/facetheory)
install(EXPORT facetheory NAMESPACE facetheory:: DESTINATION ${package} FILE facetheoryTargets.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/facetheoryConfig.cmake.in
  ${PROJECT_BINARY_DIR}/facetheoryConfig.cmake INSTALL_DESTINATION ${package})
# Before 1.0 every minor version may change the contracts.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/facetheoryConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/facetheoryConfig.cmake ${PROJECT_BINARY_DIR}/facetheoryConfigVersion.cmake
        DESTINATION ${package})

# pkg-config: the path to the prefix is relative, so that the installed tree may be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
set(pc_libs "")
foreach(module IN LISTS modules)
  string(PREPEND pc_libs "-l${module} ")  # upper layers first: the linker resolves from left to right
endforeach()
get_target_property(definitions facetheory_base INTERFACE_COMPILE_DEFINITIONS)
list(TRANSFORM definitions PREPEND "-D")
list(JOIN definitions " " pc_definitions)
configure_file(${CMAKE_CURRENT_LIST_DIR}/facetheory.pc.in ${PROJECT_BINARY_DIR}/facetheory.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/facetheory.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
