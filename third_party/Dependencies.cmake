# Libraries of the Linux distribution; scripts/install-packages names their packages.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)

# For libraries whose CMake files are missing or differ between distributions.
function(olrank_system_library target header)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "LIBRARY" "")
  find_path(${target}_INCLUDE_DIR ${header} REQUIRED)
  add_library(System::${target} INTERFACE IMPORTED)
  if(arg_LIBRARY)
    find_library(${target}_LIBRARY ${arg_LIBRARY} REQUIRED)
    target_link_libraries(System::${target} INTERFACE ${${target}_LIBRARY})
  endif()
endfunction()
olrank_system_library(zstd zstd.h LIBRARY zstd)
olrank_system_library(xxhash xxh3.h LIBRARY xxhash)
olrank_system_library(tomlplusplus toml++/toml.h)

# The distribution builds cpp-httplib as a library, with features that decide how its classes are laid out.
find_package(PkgConfig REQUIRED)
pkg_check_modules(httplib REQUIRED cpp-httplib)
add_library(System::httplib INTERFACE IMPORTED)
find_path(httplib_header httplib.h REQUIRED)
target_include_directories(System::httplib SYSTEM INTERFACE ${httplib_header})
target_compile_options(System::httplib INTERFACE ${httplib_CFLAGS_OTHER})
find_library(httplib_library cpp-httplib REQUIRED)
target_link_libraries(System::httplib INTERFACE ${httplib_library})

find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
