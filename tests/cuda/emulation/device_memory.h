#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

// Memory of the emulated devices. Only work on a device may access it; any other access ends the program
// with a message. Writes outside an array's bounds and uses after free are detected, and so is memory of
// another device than the one that works.
namespace olrank::emulation {

/// Threads take turns in the emulator; one that records keeps its turn until the recording ends.
std::recursive_mutex& emulator_mutex();

/// Selects the device of the calling thread, 0 at first. Throws CudaError if there is no such device.
void select_device(int index);
int selected_device();
/// Whether some thread has selected this device, as with CUDA, where that makes a context.
bool has_context(int index);
/// 1 at first, all without contexts.
void set_device_count(int count);

/// The bytes of a device that are allocated now.
std::size_t bytes_allocated_on(int index);

/// Bytes of the selected device that are NaN in float and double.
void* allocate_on_device(std::size_t bytes);
/// Throws std::logic_error if something was written outside the array's bounds.
void free_on_device(void* array);

constexpr std::size_t kReservedAtOnce = std::size_t{1} << 29;
/// kReservedAtOnce addresses; access to what is not mapped ends the program with a message.
std::byte* reserve_on_device();
/// Makes these bytes, whole pages, accessible to the device, with the same contents.
void map_on_device(std::byte* first, std::size_t bytes);
/// Gives the addresses up that reserve_on_device() returned.
void unmap_on_device(std::byte* reserved);

/// Whether these bytes belong to one allocated array, or are mapped. Throws std::logic_error if they are of
/// another device than the selected one.
bool lies_on_device(const void* first, std::size_t bytes);

/// Copies from the device. Throws std::logic_error for memory that nothing was written to, or a number that
/// was computed from such memory.
void copy_to_host(void* to, const void* from, std::size_t bytes);

/// Device memory is accessible while one of these exists.
class OnDevice {
 public:
  OnDevice();
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

/// Pinned host memory, which the device copies asynchronously.
void register_pinned(void* first, std::size_t bytes);
void forget_pinned(void* first);
bool lies_in_pinned_memory(const void* first, std::size_t bytes);

/// Throws std::logic_error if an argument of a kernel holds the address of host memory, or of memory of
/// another device than the selected one. Not used with
/// sanitizers, which map so many addresses that small numbers look like addresses.
void check_argument_bytes(const void* argument, std::size_t bytes);
template <class T>
void check_argument([[maybe_unused]] T argument) {
#if __has_builtin(__builtin_clear_padding) && !defined(__SANITIZE_ADDRESS__)
  __builtin_clear_padding(&argument);  // padding may hold old contents of the stack
  check_argument_bytes(&argument, sizeof argument);
#endif
}

}  // namespace olrank::emulation
