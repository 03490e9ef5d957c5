# Run at every build: writes version.cpp again only when the revision has changed, so that nothing is
# compiled or linked again otherwise.
set(OLRANK_REVISION "$ENV{OLRANK_REVISION}")
string(SUBSTRING "$Format:%H$" 0 12 archived)  # the commit, in what `git archive` makes (.gitattributes)
if(NOT OLRANK_REVISION AND NOT archived MATCHES "Format")
  set(OLRANK_REVISION ${archived})
endif()
if(NOT OLRANK_REVISION)
  execute_process(COMMAND git -c safe.directory=* describe --always --dirty --exclude=* --abbrev=12
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE OLRANK_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(OLRANK_REVISION "unknown")
  endif()
endif()
configure_file(${SOURCE_DIR}/core/version.cpp.in ${OUTPUT} @ONLY)
