#include "cuda/runtime/factorisation.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/error.h"
#include "core/ops/blas.h"
#include "cuda/runtime/work.h"
#include "tests/cuda/emulation/emulator.h"

// The twin of cuSOLVER: LAPACK in a task of the emulated stream. What a call leaves undefined becomes NaN.
namespace olrank::emulated {
namespace {

using blas::Transpose;

void require_on_device(const double* array, std::int64_t size) {
  if (!emulation::lies_on_device(array, size * sizeof(double)))
    throw std::logic_error("A factorisation goes beyond one array of the device.");
}

void forget_above_diagonal(std::int64_t n, double* a) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) a[i * n + j] = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

struct Factorisation::Library {
  std::int64_t n;

  void run(Stream stream, const std::function<void()>& work) const {
    emulation::not_while_recording("A factorisation");
    if (emulation::machine.factorisations_fail)
      throw OutOfDeviceMemory("A test fills the emulated device's memory.");
    finish_queued_work();
    emulation::start(stream, work);
    OwnedStream::wait_for(stream);
  }
};

bool Factorisation::has_room(std::int64_t n) {
  return n < emulation::machine.most_factorised;
}

Factorisation::Factorisation(std::int64_t n) : library_(std::make_unique<Library>(Library{n})) {}
Factorisation::~Factorisation() = default;

bool Factorisation::factorise(Stream stream, double* a) {
  const std::int64_t n = library_->n;
  require_on_device(a, n * n);
  ++emulation::counts.factorisations;
  bool found = false;
  library_->run(stream, [&] {
    try {
      blas::cholesky(n, a, n);
      found = true;
    } catch (const NumericError&) {
    }
    forget_above_diagonal(n, a);
  });
  return found;
}

void Factorisation::solve(Stream stream, const double* l, std::int64_t columns, double* x) {
  const std::int64_t n = library_->n;
  require_on_device(l, n * n);
  require_on_device(x, columns * n);
  ++emulation::counts.solves;
  library_->run(stream, [&] {
    for (double* column = x; column != x + columns * n; column += n) {
      blas::solve_lower(Transpose::kNo, n, 1, l, n, column, 1);
      blas::solve_lower(Transpose::kYes, n, 1, l, n, column, 1);
    }
  });
}

void Factorisation::invert_factor(Stream stream, double* l) {
  const std::int64_t n = library_->n;
  require_on_device(l, n * n);
  library_->run(stream, [&] {
    std::vector<double> inverse(n * n);
    for (std::int64_t i = 0; i < n; ++i) inverse[i * n + i] = 1.0;
    blas::solve_lower(Transpose::kNo, n, n, l, n, inverse.data(), n);
    std::copy(inverse.begin(), inverse.end(), l);
    forget_above_diagonal(n, l);
  });
}

void Factorisation::invert_from_factor(Stream stream, double* l) {
  const std::int64_t n = library_->n;
  require_on_device(l, n * n);
  library_->run(stream, [&] {
    blas::inverse_from_cholesky(n, l, n);
    forget_above_diagonal(n, l);
  });
}

}  // namespace olrank::emulated
