# After each link of a test binary: writes one CTest test for each of its GoogleTest suites, so that a suite loads
# LibTorch once and not once for each of its cases. TOGETHER makes one test of all suites that are neither SLOW nor
# named by FLAVOUR: loading LibTorch takes 0.2 s, which is longer than most suites.
# Takes BINARY, OUTPUT, PREFIX, LABELS, SLOW (suites that are not fast), FLAVOUR (suites with this label, or ALL), BUDGET
# (seconds of a suite), BUDGETS (suite=seconds;…), SLOWER (a factor of all budgets) and FOLDER.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${BINARY} --gtest_list_tests WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE listed
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${BINARY} cannot list its tests: ${status}")
endif()
string(REGEX MATCHALL "(^|\n)[^ \n][^ \n]*\\.[^\n]*" suites "${listed}")
function(write_test name filter labels seconds)
  math(EXPR seconds "${seconds} * ${SLOWER}")
  file(APPEND ${OUTPUT} "add_test([==[${PREFIX}${name}]==] \"${BINARY}\" \"--gtest_filter=${filter}\")\n"
    "set_tests_properties([==[${PREFIX}${name}]==] PROPERTIES WORKING_DIRECTORY \"${FOLDER}\" LABELS \"${labels}\" "
    "TIMEOUT ${seconds})\n")
endfunction()

file(WRITE ${OUTPUT} "")
set(together "")
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
  if(TOGETHER AND labels STREQUAL "${LABELS};fast" AND seconds EQUAL BUDGET)
    list(APPEND together "${suite}.*")
  else()
    write_test(${suite} "${suite}.*" "${labels}" ${seconds})
  endif()
endforeach()
if(together)
  get_filename_component(name ${BINARY} NAME)
  list(JOIN together ":" filter)
  write_test(${name} "${filter}" "${LABELS};fast" ${BUDGET})
endif()
