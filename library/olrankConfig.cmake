# find_package(olrank): the target olrank::olrank.
include(${CMAKE_CURRENT_LIST_DIR}/olrankTargets.cmake)
