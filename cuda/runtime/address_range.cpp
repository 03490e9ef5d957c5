#include "cuda/runtime/address_range.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <bit>
#include <utility>

#include "core/error.h"
#include "cuda/runtime/batch.h"
#include "cuda/runtime/check.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// The driver's functions for virtual memory. They are looked up, so that the program starts without a
/// driver.
struct Driver {
  static constexpr unsigned kAnyVersion = 6000;
  static constexpr unsigned kVirtualMemory = 10020;  // CUDA 10.2

  bool complete = true;
  decltype(&::cuDeviceGetAttribute) attribute = find("cuDeviceGetAttribute", kAnyVersion);
  decltype(&::cuGetErrorString) describe = find("cuGetErrorString", kAnyVersion);
  decltype(&::cuMemGetAllocationGranularity) granularity = find("cuMemGetAllocationGranularity");
  decltype(&::cuMemAddressReserve) reserve = find("cuMemAddressReserve");
  decltype(&::cuMemAddressFree) free = find("cuMemAddressFree");
  decltype(&::cuMemCreate) create = find("cuMemCreate");
  decltype(&::cuMemRelease) release = find("cuMemRelease");
  decltype(&::cuMemMap) map = find("cuMemMap");
  decltype(&::cuMemUnmap) unmap = find("cuMemUnmap");
  decltype(&::cuMemSetAccess) set_access = find("cuMemSetAccess");

  void check(CUresult status, const char* call) const {
    if (status == CUDA_SUCCESS) return;
    if (status == CUDA_ERROR_OUT_OF_MEMORY) cuda::check(cudaErrorMemoryAllocation, call);
    const char* text = nullptr;
    if (describe(status, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
    throw CudaError(fmt::format("{} failed: {}.", call, text));
  }

 private:
  struct Found {
    void* place = nullptr;

    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(place);
    }
  };
  Found find(const char* name, unsigned version = kVirtualMemory) {
    Found found;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion(name, &found.place, version, cudaEnableDefault, &result);
    if (status != cudaSuccess) cudaGetLastError();  // not an error, so that no later check may report it
    complete &= status == cudaSuccess && result == cudaDriverEntryPointSuccess && found.place != nullptr;
    return found;
  }
};

const Driver& driver() {
  static const Driver found;
  return found;
}

int current_device() {
  int device = 0;
  OLRANK_CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

CUmemAllocationProp memory_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

CUdeviceptr address(const std::byte* place) {
  return reinterpret_cast<CUdeviceptr>(place);
}

}  // namespace

bool AddressRange::supported() {
  if (!driver().complete) return false;
  int answer = 0;
  driver().check(driver().attribute(&answer, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                    current_device()),
                 "cuDeviceGetAttribute");
  return answer != 0;
}

AddressRange::~AddressRange() {
  if (first_ == nullptr) return;
  finish_before_freeing();
  // Unlike cudaFree(), unmapping does not wait.
  cudaStreamSynchronize(stream_);
  for (std::int64_t at = 0; at < mapped_; at += chunk_)
    driver().unmap(address(first_ + at), static_cast<std::size_t>(chunk_));
  driver().free(address(first_), static_cast<std::size_t>(reserved_));
}

void AddressRange::swap(AddressRange& other) noexcept {
  std::swap(first_, other.first_);
  std::swap(reserved_, other.reserved_);
  std::swap(mapped_, other.mapped_);
  std::swap(chunk_, other.chunk_);
  std::swap(device_, other.device_);
  std::swap(stream_, other.stream_);
}

void AddressRange::grow(Stream stream, std::int64_t bytes) {
  stream_ = stream;
  if (bytes > 0 && first_ == nullptr) reserve();
  while (mapped_ < bytes) map_chunk();
}

/// Addresses for as many bytes as the device has; they cost next to nothing.
void AddressRange::reserve() {
  device_ = current_device();
  const CUmemAllocationProp properties = memory_of(device_);
  std::size_t granularity = 0;
  driver().check(driver().granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                 "cuMemGetAllocationGranularity");
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  OLRANK_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  const auto page = static_cast<std::int64_t>(granularity);
  chunk_ = parts_of(kChunk, page) * page;
  reserved_ = parts_of(static_cast<std::int64_t>(total_bytes), chunk_) * chunk_;
  CUdeviceptr reserved = 0;
  driver().check(driver().reserve(&reserved, static_cast<std::size_t>(reserved_), 0, 0, 0),
                 "cuMemAddressReserve");
  first_ = std::bit_cast<std::byte*>(reserved);
}

void AddressRange::map_chunk() {
  if (mapped_ == reserved_) cuda::check(cudaErrorMemoryAllocation, "Growing beyond the GPU's memory");
  const CUmemAllocationProp properties = memory_of(device_);
  const auto size = static_cast<std::size_t>(chunk_);
  const CUdeviceptr place = address(first_ + mapped_);
  CUmemGenericAllocationHandle memory{};
  driver().check(driver().create(&memory, size, &properties, 0), "cuMemCreate");
  const CUresult mapping = driver().map(place, size, 0, memory, 0);
  driver().release(memory);  // it lives as long as it is mapped
  driver().check(mapping, "cuMemMap");
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult opened = driver().set_access(place, size, &access, 1);
  if (opened != CUDA_SUCCESS) driver().unmap(place, size);
  driver().check(opened, "cuMemSetAccess");
  mapped_ += chunk_;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
