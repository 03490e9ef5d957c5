# Which GPUs the kernels are built for: all supported ones in a release, else those of this machine,
# else 9.0. Sets CMAKE_CUDA_ARCHITECTURES unless the caller has.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  if(OLRANK_RELEASE)
    set(CMAKE_CUDA_ARCHITECTURES 80 90 120)
  else()
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0 AND capabilities MATCHES "^[0-9]+\\.[0-9]+")
      string(REPLACE "." "" capabilities "${capabilities}")
      string(REPLACE "\n" ";" capabilities "${capabilities}")
      list(REMOVE_DUPLICATES capabilities)
      set(CMAKE_CUDA_ARCHITECTURES ${capabilities})
    else()
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
  endif()
endif()
