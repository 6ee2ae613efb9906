# Checks of the tree itself, run by ./test beside the unit tests (in the release build only: label `check`).
function(facetheory_check name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS check TIMEOUT 300)
endfunction()

facetheory_check(layers ${PROJECT_SOURCE_DIR}/tools/check_layers)
facetheory_check(layers_self_test ${PROJECT_SOURCE_DIR}/tools/check_layers --self-test)
facetheory_check(run_tests_self_test /usr/bin/python3 tools/run_tests_test.py)
facetheory_check(hooks /usr/bin/python3 tools/hooks_test.py)
facetheory_check(format ${PROJECT_SOURCE_DIR}/tools/format --check)
facetheory_check(docs ${PROJECT_SOURCE_DIR}/tools/check_docs)
facetheory_check(docs_self_test ${PROJECT_SOURCE_DIR}/tools/check_docs --self-test)
facetheory_check(coverage ${PROJECT_SOURCE_DIR}/tools/check_coverage)
facetheory_check(coverage_self_test ${PROJECT_SOURCE_DIR}/tools/check_coverage --self-test)
facetheory_check(scale ${PROJECT_SOURCE_DIR}/tools/scale_model --check)
facetheory_check(scale_self_test ${PROJECT_SOURCE_DIR}/tools/scale_model --self-test)
facetheory_check(run /usr/bin/python3 tests/examples/run_test.py)
facetheory_check(clang ${PROJECT_SOURCE_DIR}/tools/check_clang ${PROJECT_BINARY_DIR})
facetheory_check(consumer ${PROJECT_SOURCE_DIR}/tools/check_consumer ${PROJECT_BINARY_DIR})
# The fuzz programs are built, and each runs the inputs that it begins with.
facetheory_check(fuzz ${PROJECT_SOURCE_DIR}/tools/fuzz --runs 1)
# Some of the mistakes of tools/mistakes.py, others whenever the source changes; that all of them still fit the source
# is looked at each time.
facetheory_check(mutate ${PROJECT_SOURCE_DIR}/tools/mutate --sample 3)
facetheory_check(mutate_self_test ${PROJECT_SOURCE_DIR}/tools/mutate --self-test)
# Use all cores by themselves. The limit is for what never ends: two cores that others use as well take clang 15
# minutes.
set_tests_properties(clang fuzz mutate PROPERTIES TIMEOUT 2700 RUN_SERIAL ON)
