# Headers that nearly every source needs, compiled once for all libraries and once for all tests. Only together with
# unity builds: without both, every source must get along with what it includes itself (tools/check_clang sees to that,
# too).
function(facetheory_precompile name)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE Threads::Threads Boost::headers)
  target_compile_definitions(${name} PRIVATE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
  facetheory_warnings(${name})
  target_precompile_headers(${name} PRIVATE
    <chrono> <functional> <map> <memory> <optional> <string> <variant> <vector>
    <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp> <boost/asio/post.hpp> <boost/asio/redirect_error.hpp>
    <boost/asio/steady_timer.hpp> <boost/asio/use_awaitable.hpp> ${ARGN})
endfunction()

function(facetheory_use_precompiled target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# facetheory_module(table SOURCES a.cc b.cc USES facetheory::aws PkgConfig::lmdb)
#
# One folder of src/ is one static library, facetheory::<name>, with its sources listed by name.
function(facetheory_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;USES_PRIVATELY")
  add_library(facetheory_${name} STATIC ${arg_SOURCES})
  add_library(facetheory::${name} ALIAS facetheory_${name})
  set_target_properties(facetheory_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(facetheory_${name} PUBLIC cxx_std_20)
  target_include_directories(facetheory_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(facetheory_${name} PUBLIC ${arg_USES} PRIVATE ${arg_USES_PRIVATELY})
  facetheory_warnings(facetheory_${name})
  facetheory_use_precompiled(facetheory_${name} facetheory_library_headers)
  set_property(GLOBAL APPEND PROPERTY FACETHEORY_MODULES facetheory_${name})
endfunction()

# Warnings are errors in everything that is ours.
function(facetheory_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
    -Woverloaded-virtual -Wimplicit-fallthrough -Werror
    # g++ 12 reports these in optimised code of the standard library and of Asio's coroutine frames.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
                             -Wno-mismatched-new-delete>
    # Tidies up less often while it compiles: some hundred megabytes more, a twentieth of the time less.
    "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=500000>")
  if(CMAKE_UNITY_BUILD)
    # This warning is about headers, and g++ takes the sources that a unity file includes for headers.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# For what only the tests run, where nobody waits for it: what is tested is optimised; optimising tests, too, doubles
# the build.
function(facetheory_quick_to_build target)
  # The headers are compiled with GoogleTest's options, and fit nothing that is compiled without.
  target_compile_options(${target} PRIVATE -O0 $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  facetheory_use_precompiled(${target} facetheory_test_headers)
endfunction()

# facetheory_test(table_test SOURCES number_test.cc USES facetheory::table)
#
# One GoogleTest program, built when FACETHEORY_TESTS is on and run by ./test. Name it for what it covers. What needs
# more than the usual 300 seconds, or the machine for itself, says so: set_tests_properties(... TIMEOUT 600 RUN_SERIAL
# ON).
function(facetheory_test name)
  if(NOT FACETHEORY_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_USES} facetheory_test_support GTest::gmock GTest::gtest_main)
  facetheory_warnings(${name})
  facetheory_quick_to_build(${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS gtest TIMEOUT 300)
endfunction()
