#pragma once

#include <cstddef>

// Memory of the emulated device. Only work on the device may touch it: elsewhere a look into it ends the
// program with a sentence, as it would where a device has memory of its own. What lies before and behind an
// array is watched, and so is an array that was freed.
namespace olrank::emulation {

/// Bytes that are all 0xFF: NaN in float and double.
void* allocate_on_device(std::size_t bytes);
/// Throws std::logic_error when something was written before or behind the array.
void free_on_device(void* array);

/// From now on work on the device may use the host's memory as its own.
void share_host_memory();

/// Whether these bytes belong to one array that is allocated.
bool lies_on_device(const void* first, std::size_t bytes);

/// While one of these lives, the device's memory can be touched.
class OnDevice {
 public:
  OnDevice();
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

/// Host memory that the device copies to and from by itself.
void register_pinned(void* first, std::size_t bytes);
void forget_pinned(void* first);
bool lies_in_pinned_memory(const void* first, std::size_t bytes);

/// Throws std::logic_error where an argument of a kernel holds the address of host memory. Sanitizers take
/// so many addresses for themselves that small numbers look like some.
void check_argument_bytes(const void* argument, std::size_t bytes);
template <class T>
void check_argument([[maybe_unused]] T argument) {
#if __has_builtin(__builtin_clear_padding) && !defined(__SANITIZE_ADDRESS__)
  __builtin_clear_padding(&argument);  // where the stack had something else before
  check_argument_bytes(&argument, sizeof argument);
#endif
}

}  // namespace olrank::emulation
