#include "cuda/engine/fresh_factor.h"

#include "core/error.h"
#include "core/runtime/log.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Whether `factorise` has succeeded, in the memory that is left.
bool in_memory(std::int64_t n, FunctionRef<bool()> factorise) {
  if (n == 0 || n > FreshFactor::kMost) return false;
  try {
    if (Factorisation::has_room(n)) return factorise();
  } catch (const OutOfDeviceMemory&) {
    // Another trial was faster.
  }
  log_detail("The GPU's memory has no room to factorise {0} × {0} numbers.", n);
  return false;
}

bool fill_and_factorise(Stream stream, std::int64_t workspace_size, Factorisation& library, double* matrix,
                        FreshFactor::Fill fill) {
  DeviceArray<double> workspace(workspace_size);
  fill(workspace.data(), matrix);
  return library.factorise(stream, matrix);
}

}  // namespace

std::unique_ptr<FreshFactor> FreshFactor::of(Stream stream, std::int64_t n, std::int64_t workspace,
                                             Fill fill) {
  std::unique_ptr<FreshFactor> made;
  const bool found = in_memory(n, [&] {
    made.reset(new FreshFactor(n));
    return fill_and_factorise(stream, workspace, made->library_, made->values_.data(), fill);
  });
  if (!found) made.reset();
  return made;
}

bool FreshFactor::replace_by_inverse(Stream stream, std::int64_t n, std::int64_t workspace, double* matrix,
                                     Fill fill, FunctionRef<void(const double* l)> see) {
  return in_memory(n, [&] {
    Factorisation library(n);
    if (!fill_and_factorise(stream, workspace, library, matrix, fill)) return false;
    see(matrix);
    library.invert_from_factor(stream, matrix);
    mirror_lower(stream, n, matrix);
    return true;
  });
}

bool FreshFactor::invert(Stream stream) {
  try {
    library_.invert_factor(stream, values_.data());
    return true;
  } catch (const OutOfDeviceMemory&) {
    return false;
  }
}

std::vector<double> FreshFactor::solve(Stream stream, std::span<const double> x) {
  OwnedStream::wait_for(stream);
  copy_to_device(x, x_.data());
  library_.solve(stream, values_.data(), x_.data());
  return x_.to_host();
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
