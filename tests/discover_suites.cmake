# After each link of a test binary: writes one CTest test for each of its GoogleTest suites, so that a suite loads
# LibTorch once and not once for each of its cases.
# Takes BINARY, OUTPUT, PREFIX, LABELS, SLOW (suites that are not fast), FLAVOUR (suites with this label, or ALL), BUDGET (seconds of a suite), BUDGETS
# (suite=seconds;…), SLOWER (a factor of all budgets) and FOLDER.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${BINARY} --gtest_list_tests WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE listed
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${BINARY} cannot list its tests: ${status}")
endif()
string(REGEX MATCHALL "(^|\n)[^ \n][^ \n]*\\.[^\n]*" suites "${listed}")
set(text "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "^\n?([^ ]*)\\..*" "\\1" suite "${suite}")
  set(labels "${LABELS};fast")
  if(suite IN_LIST SLOW)
    set(labels "${LABELS};slow")
  endif()
  if(FLAVOUR STREQUAL "ALL" OR suite IN_LIST FLAVOUR)
    string(APPEND labels ";flavour")
  endif()
  set(seconds ${BUDGET})
  foreach(budget IN LISTS BUDGETS)
    if(budget MATCHES "^(.*)=([0-9]+)$" AND suite STREQUAL CMAKE_MATCH_1)
      set(seconds ${CMAKE_MATCH_2})
    endif()
  endforeach()
  math(EXPR seconds "${seconds} * ${SLOWER}")
  string(APPEND text "add_test([==[${PREFIX}${suite}]==] \"${BINARY}\" \"--gtest_filter=${suite}.*\")\n"
    "set_tests_properties([==[${PREFIX}${suite}]==] PROPERTIES WORKING_DIRECTORY \"${FOLDER}\" LABELS \"${labels}\" "
    "TIMEOUT ${seconds})\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
