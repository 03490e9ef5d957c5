#include "cuda/runtime/factorisation.h"

#include <cusolverDn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/throw_error.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/work.h"

namespace olrank::cuda {
namespace {

// The lower triangle of a row-major matrix is the upper one of the same memory in column-major order, and
// L Lᵀ is UᵀU there.
constexpr cublasFillMode_t kTriangle = CUBLAS_FILL_MODE_UPPER;
constexpr cudaDataType kType = CUDA_R_64F;

void check_solver(cusolverStatus_t status, std::string_view call) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  if (status == CUSOLVER_STATUS_ALLOC_FAILED) check(cudaErrorMemoryAllocation, call);
  throw CudaError(fmt::format("{} failed with status {} of cuSOLVER.", call, static_cast<int>(status)));
}

/// The bytes that a function wants on the device and on the host.
struct Room {
  std::size_t on_device = 0;
  std::size_t on_host = 0;
};

}  // namespace

#define OLRANK_SOLVER_CHECK(call) check_solver((call), #call)

namespace {

/// cuSOLVER's handle on a GPU. Making one takes longer than a factorisation, so that they are kept until
/// the process ends: as many as factorisations were ever at work at once.
struct Handle {
  int gpu = 0;
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;
};

struct Handles {
  std::mutex mutex;
  std::vector<Handle> idle;
};

Handles& handles() {
  static auto* kept = new Handles;  // the driver may be gone when static objects end
  return *kept;
}

Handle take_handle() {
  Handle handle;
  OLRANK_CUDA_CHECK(cudaGetDevice(&handle.gpu));
  {
    const std::lock_guard lock(handles().mutex);
    std::vector<Handle>& idle = handles().idle;
    const auto found = std::find_if(idle.begin(), idle.end(),
                                    [&](const Handle& other) { return other.gpu == handle.gpu; });
    if (found != idle.end()) {
      handle = *found;
      idle.erase(found);
      return handle;
    }
  }
  OLRANK_SOLVER_CHECK(cusolverDnCreate(&handle.solver));
  OLRANK_SOLVER_CHECK(cusolverDnCreateParams(&handle.params));
  OLRANK_SOLVER_CHECK(cusolverDnSetDeterministicMode(handle.solver, CUSOLVER_DETERMINISTIC_RESULTS));
  return handle;
}

}  // namespace

struct Factorisation::Library {
  explicit Library(std::int64_t size) : n(size), kept(take_handle()) {}
  ~Library() {
    const std::lock_guard lock(handles().mutex);
    handles().idle.push_back(kept);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Library& in(Stream stream) {
    finish_queued_work();
    OLRANK_SOLVER_CHECK(cusolverDnSetStream(handle, stream));
    return *this;
  }
  void take(const Room& room) {
    const auto bytes = static_cast<std::int64_t>(room.on_device);
    if (bytes > on_device.size()) on_device = DeviceArray<std::byte>(bytes);
    on_host.resize(std::max(on_host.size(), room.on_host));
  }
  /// LAPACK's info of the latest call, once the stream has finished.
  int wait_for_info(Stream stream) const {
    OwnedStream::wait_for(stream);
    return info.to_host()[0];
  }
  void require_success(Stream stream, std::string_view call) const {
    const int found = wait_for_info(stream);
    if (found != 0) throw CudaError(fmt::format("{} failed with info {}.", call, found));
  }

  std::int64_t n;
  Handle kept;
  cusolverDnHandle_t handle = kept.solver;
  cusolverDnParams_t params = kept.params;
  DeviceArray<std::byte> on_device;
  std::vector<std::byte> on_host;
  DeviceArray<int> info{1};
};

bool Factorisation::has_room(std::int64_t n) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  OLRANK_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  constexpr std::int64_t kOfLibrary = std::int64_t{256} << 20;  // its handle and its kernels
  const std::int64_t wanted = kOfLibrary + 2 * n * n * static_cast<std::int64_t>(sizeof(double));
  return wanted <= static_cast<std::int64_t>(free_bytes / 2);
}

Factorisation::Factorisation(std::int64_t n) {
  // cusolverDnDpotri() has no 64-bit form.
  if (n * n > std::numeric_limits<int>::max()) {
    throw_error<InvalidArgument>("A {0} x {0} matrix is too large to be factorised on a GPU.", n);
  }
  library_ = std::make_unique<Library>(n);
}
Factorisation::~Factorisation() = default;

bool Factorisation::factorise(Stream stream, double* a) {
  Library& library = library_->in(stream);
  const std::int64_t n = library.n;
  Room room;
  OLRANK_SOLVER_CHECK(cusolverDnXpotrf_bufferSize(library.handle, library.params, kTriangle, n, kType, a, n,
                                                  kType, &room.on_device, &room.on_host));
  library.take(room);
  OLRANK_SOLVER_CHECK(cusolverDnXpotrf(library.handle, library.params, kTriangle, n, kType, a, n, kType,
                                       library.on_device.data(), room.on_device, library.on_host.data(),
                                       room.on_host, library.info.data()));
  const int info = library.wait_for_info(stream);
  if (info < 0) throw CudaError(fmt::format("cusolverDnXpotrf() refuses its argument {}.", -info));
  return info == 0;
}

void Factorisation::solve(Stream stream, const double* l, std::int64_t columns, double* x) {
  Library& library = library_->in(stream);
  const std::int64_t n = library.n;
  OLRANK_SOLVER_CHECK(cusolverDnXpotrs(library.handle, library.params, kTriangle, n, columns, kType, l, n,
                                       kType, x, n, library.info.data()));
  library.require_success(stream, "cusolverDnXpotrs()");
}

void Factorisation::invert_factor(Stream stream, double* l) {
  Library& library = library_->in(stream);
  const std::int64_t n = library.n;
  Room room;
  OLRANK_SOLVER_CHECK(cusolverDnXtrtri_bufferSize(library.handle, kTriangle, CUBLAS_DIAG_NON_UNIT, n, kType,
                                                  l, n, &room.on_device, &room.on_host));
  library.take(room);
  OLRANK_SOLVER_CHECK(cusolverDnXtrtri(library.handle, kTriangle, CUBLAS_DIAG_NON_UNIT, n, kType, l, n,
                                       library.on_device.data(), room.on_device, library.on_host.data(),
                                       room.on_host, library.info.data()));
  library.require_success(stream, "cusolverDnXtrtri()");
}

void Factorisation::invert_from_factor(Stream stream, double* l) {
  Library& library = library_->in(stream);
  const int n = static_cast<int>(library.n);
  int numbers = 0;
  OLRANK_SOLVER_CHECK(cusolverDnDpotri_bufferSize(library.handle, kTriangle, n, l, n, &numbers));
  library.take({static_cast<std::size_t>(numbers) * sizeof(double), 0});
  OLRANK_SOLVER_CHECK(cusolverDnDpotri(library.handle, kTriangle, n, l, n,
                                       reinterpret_cast<double*>(library.on_device.data()), numbers,
                                       library.info.data()));
  library.require_success(stream, "cusolverDnDpotri()");
}

DeviceLibrary factorisation_library() {
  int part[3] = {};
  OLRANK_SOLVER_CHECK(cusolverGetProperty(MAJOR_VERSION, &part[0]));
  OLRANK_SOLVER_CHECK(cusolverGetProperty(MINOR_VERSION, &part[1]));
  OLRANK_SOLVER_CHECK(cusolverGetProperty(PATCH_LEVEL, &part[2]));
  return {"cuSOLVER", fmt::format("{}.{}.{}", part[0], part[1], part[2]),
          fmt::format("{}.{}.{}", CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR, CUSOLVER_VER_PATCH)};
}

}  // namespace olrank::cuda
