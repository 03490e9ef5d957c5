#include "core/io/mapped_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <new>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"

namespace olrank {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  static const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  return (bytes + page - 1) / page * page;
}

class CopiedBytes : public ByteArrival {
 public:
  explicit CopiedBytes(std::span<const std::byte> bytes)
      : bytes_(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end())) {}

  bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool /*wait*/) override {
    if (bytes_ != nullptr) sink({*bytes_, bytes_});
    bytes_.reset();
    return true;
  }

 private:
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

}  // namespace

MappedMemory MappedMemory::anonymous(std::size_t bytes) {
  if (bytes == 0) return {};
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), bytes};
}

MappedMemory MappedMemory::of_unnamed_file(const std::filesystem::path& folder, std::size_t bytes) {
  if (bytes == 0) return {};
  std::string name = (folder / "features-XXXXXX").string();
  const Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.is_open()) throw IoError("create a file in", folder.string(), errno);
  if (::unlink(name.c_str()) != 0) throw IoError("remove", name, errno);
  // A page without space on the disk would end the process when it is first written.
  if (const int failed = ::posix_fallocate(file.number(), 0, static_cast<off_t>(bytes)); failed != 0)
    throw IoError("write", folder.string(), failed);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) throw IoError("map a file of", folder.string(), errno);
  return {static_cast<std::byte*>(memory), bytes};
}

MappedMemory MappedMemory::of_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw IoError("read", path.string(), errno);
  return of_descriptor(file.number(), path);
}

MappedMemory MappedMemory::of_descriptor(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw IoError("read", path.string(), errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (memory == MAP_FAILED) throw IoError("read", path.string(), errno);
  return {static_cast<std::byte*>(memory), size};
}

void MappedMemory::shrink(std::size_t bytes) {
  assert(bytes <= size_);
  if (bytes == 0) return release();
  const std::size_t kept = whole_pages(bytes);
  if (kept < whole_pages(size_)) ::munmap(data_ + kept, size_ - kept);
  size_ = bytes;
}

void MappedMemory::leave_pages() const {
  if (data_ != nullptr) ::madvise(data_, size_, MADV_DONTNEED);
}

void MappedMemory::release() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

void Lineage::renew() {
  static std::atomic<std::uint64_t> latest{0};
  id_ = ++latest;
}

std::shared_ptr<ByteArrival> HostSource::start(std::size_t first, std::size_t bytes) const {
  return std::make_shared<CopiedBytes>(values_.subspan(first, bytes));
}

}  // namespace olrank
