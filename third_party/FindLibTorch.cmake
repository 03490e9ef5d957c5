# Finds an unpacked LibTorch and makes two imported targets:
#   Torch::cpu   libtorch_cpu and libc10, enough where no GPU is
#   Torch::cuda  Torch::cpu with libtorch_cuda, libc10_cuda and the CUDA libraries of NVIDIA's wheels
# torch's own package configuration is not used: it fails without a CUDA toolkit.
# OLRANK_TORCH_DIR (cache or environment) is the torch folder itself or the folder that holds it.

set(LibTorch_hint "${OLRANK_TORCH_DIR}")
if(NOT LibTorch_hint)
  set(LibTorch_hint "$ENV{OLRANK_TORCH_DIR}")
endif()
if(LibTorch_hint)
  set(LibTorch_places ${LibTorch_hint}/torch ${LibTorch_hint})
elseif(OLRANK_CUDA)
  set(LibTorch_places ${CMAKE_SOURCE_DIR}/.deps/libtorch-cuda/torch)
else()
  set(LibTorch_places ${CMAKE_SOURCE_DIR}/.deps/libtorch-cpu/torch
                      ${CMAKE_SOURCE_DIR}/.deps/libtorch-cuda/torch)
endif()

unset(LibTorch_ROOT)
foreach(place IN LISTS LibTorch_places)
  if(EXISTS ${place}/lib/libtorch_cpu.so AND EXISTS ${place}/include/c10/macros/Macros.h)
    set(LibTorch_ROOT ${place})
    break()
  endif()
endforeach()

if(LibTorch_ROOT)
  set(LibTorch_INCLUDE_DIRS ${LibTorch_ROOT}/include ${LibTorch_ROOT}/include/torch/csrc/api/include)
  foreach(version_header IN ITEMS ${LibTorch_ROOT}/include/torch/headeronly/version.h
                                  ${LibTorch_ROOT}/include/torch/csrc/api/include/torch/version.h)
    if(EXISTS ${version_header})
      file(STRINGS ${version_header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      if(lines)
        string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
        list(JOIN numbers "." LibTorch_VERSION)
        break()
      endif()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT
  VERSION_VAR LibTorch_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE
    "olrank takes LibTorch 2.11 to 2.15: let scripts/build fetch it, or name one that is there already with OLRANK_TORCH_DIR.")

if(LibTorch_FOUND AND NOT TARGET Torch::cpu)
  get_filename_component(site ${LibTorch_ROOT} DIRECTORY)
  # NVIDIA's wheels lie beside torch; libtorch_cpu itself needs the runtime and CUPTI from there.
  set(LibTorch_RUNTIME_DIRS ${LibTorch_ROOT}/lib)
  foreach(part IN ITEMS cu13 cudnn nccl nvshmem cusparselt)
    if(IS_DIRECTORY ${site}/nvidia/${part}/lib)
      list(APPEND LibTorch_RUNTIME_DIRS ${site}/nvidia/${part}/lib)
    endif()
  endforeach()

  add_library(Torch::c10 SHARED IMPORTED)
  set_target_properties(Torch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_ROOT}/lib/libc10.so)
  add_library(Torch::cpu SHARED IMPORTED)
  set_target_properties(Torch::cpu PROPERTIES
    IMPORTED_LOCATION ${LibTorch_ROOT}/lib/libtorch_cpu.so
    INTERFACE_LINK_LIBRARIES Torch::c10)
  # After the system's folders: LibTorch carries headers of other libraries, such as another version of fmt,
  # whose code it does not export.
  foreach(dir IN LISTS LibTorch_INCLUDE_DIRS)
    set_property(TARGET Torch::cpu APPEND PROPERTY INTERFACE_COMPILE_OPTIONS
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${dir}>")
  endforeach()
  foreach(dir IN LISTS LibTorch_RUNTIME_DIRS)
    set_property(TARGET Torch::cpu APPEND PROPERTY INTERFACE_LINK_OPTIONS -Wl,-rpath-link,${dir})
  endforeach()

  if(EXISTS ${LibTorch_ROOT}/lib/libtorch_cuda.so)
    add_library(Torch::c10_cuda SHARED IMPORTED)
    set_target_properties(Torch::c10_cuda PROPERTIES IMPORTED_LOCATION ${LibTorch_ROOT}/lib/libc10_cuda.so)
    add_library(Torch::cuda SHARED IMPORTED)
    set_target_properties(Torch::cuda PROPERTIES
      IMPORTED_LOCATION ${LibTorch_ROOT}/lib/libtorch_cuda.so
      INTERFACE_LINK_LIBRARIES "Torch::cpu;Torch::c10_cuda"
      # No code calls libtorch_cuda by name: it registers itself when loaded, so the linker must not drop it.
      INTERFACE_LINK_OPTIONS LINKER:--no-as-needed)
    # These are LibTorch's own CUDA libraries, so that one process holds one copy of each.
    set(cuda_lib ${site}/nvidia/cu13/lib)
    foreach(entry IN ITEMS cudart:libcudart.so.13 cublas:libcublas.so.13 cublasLt:libcublasLt.so.13
                          cusolver:libcusolver.so.12)
      string(REPLACE ":" ";" entry ${entry})
      list(GET entry 0 name)
      list(GET entry 1 file)
      if(EXISTS ${cuda_lib}/${file})
        add_library(Torch::${name} SHARED IMPORTED)
        set_target_properties(Torch::${name} PROPERTIES
          IMPORTED_LOCATION ${cuda_lib}/${file}
          INTERFACE_INCLUDE_DIRECTORIES ${site}/nvidia/cu13/include
          INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${site}/nvidia/cu13/include)
      endif()
    endforeach()
  endif()
endif()
