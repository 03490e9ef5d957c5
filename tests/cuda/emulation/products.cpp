#include "cuda/runtime/products.h"

#include <bit>
#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/ops/blas.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/device_work.h"

// The twin of cuBLASLt: a product is a task on the emulated stream, computed by the CPU's BLAS.
namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kWorkspaceBytes = 256;
constexpr int kPoison = 0xFF;  // NaN in float and double

/// Numbers from a matrix's first to its last, or of all matrices of a batch.
std::int64_t extent(const MatrixPlaces& places, const StoredSides& sides, std::int64_t batch) {
  return (batch - 1) * places.step + (sides.rows - 1) * places.stride + sides.columns;
}

template <class Number>
void check_address(const Number* array, const MatrixPlaces& places, const StoredSides& sides,
                   std::int64_t batch) {
  const Number* first = array + places.offset;
  const auto bytes = static_cast<std::size_t>(extent(places, sides, batch)) * sizeof(Number);
  if (!emulation::lies_on_device(first, bytes))
    throw std::logic_error("A matrix to multiply goes beyond one array.");
  if (std::bit_cast<std::uintptr_t>(first) %
          static_cast<std::uintptr_t>(alignment_of(places, sizeof(Number))) !=
      0)
    throw std::logic_error("A matrix to multiply does not lie where its places say.");
}

/// Whether some number may belong to both: their ranges overlap, unless rows of one stride hold them side
/// by side.
template <class Number>
bool overlap(const Number* one, const MatrixPlaces& one_places, const StoredSides& one_sides,
             const Number* other, const MatrixPlaces& other_places, const StoredSides& other_sides,
             std::int64_t batch) {
  const Number* a = one + one_places.offset;
  const Number* b = other + other_places.offset;
  if (a >= b + extent(other_places, other_sides, batch) || b >= a + extent(one_places, one_sides, batch))
    return false;
  const std::int64_t stride = one_places.stride;
  if (stride != other_places.stride || one_places.step % stride != 0 || other_places.step % stride != 0)
    return true;
  const std::int64_t ahead = ((b - a) % stride + stride) % stride;
  return ahead < one_sides.columns || ahead + other_sides.columns > stride;
}

/// The matrix as numbers without gaps, which keeps bits from depending on where it lies.
template <class Number>
std::vector<Number> read(const Number* from, std::int64_t stride, const StoredSides& sides) {
  std::vector<Number> numbers;
  numbers.reserve(static_cast<std::size_t>(sides.rows * sides.columns));
  for (std::int64_t i = 0; i < sides.rows; ++i)
    numbers.insert(numbers.end(), from + i * stride, from + i * stride + sides.columns);
  return numbers;
}

template <class Number>
void multiply_one(const ProductShape& shape, const Number* a, const Number* b, const Number* bias,
                  Number* c, ProductScales scales) {
  const StoredSides of_a = sides_of_a(shape);
  const StoredSides of_b = sides_of_b(shape);
  const std::vector<Number> left = read(a, shape.a.stride, of_a);
  const std::vector<Number> right = read(b, shape.b.stride, of_b);
  std::vector<Number> product(static_cast<std::size_t>(shape.rows * shape.columns));
  const auto transposed = [](bool yes) { return yes ? blas::Transpose::kYes : blas::Transpose::kNo; };
  blas::gemm(transposed(shape.transposes_a), transposed(shape.transposes_b), shape.rows, shape.columns,
             shape.inner, static_cast<Number>(scales.alpha), left.data(), of_a.columns, right.data(),
             of_b.columns, Number{0}, product.data(), shape.columns);
  const auto beta = static_cast<Number>(scales.beta);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t j = 0; j < shape.columns; ++j) {
      Number& out = c[i * shape.c.stride + j];
      Number value = product[static_cast<std::size_t>(i * shape.columns + j)];
      if (beta != Number{0}) value += beta * out;
      if (bias != nullptr) value += bias[j];
      out = shape.relu && !(value > Number{0}) ? Number{0} : value;
    }
  }
}

}  // namespace

struct ProductPlans::State {
  std::set<std::pair<std::size_t, ProductShape>> planned;  // with the bytes of a number

  template <class Number>
  void multiply(Stream stream, std::byte* workspace, const ProductShape& shape, const Number* a,
                const Number* b, Number* c, ProductScales scales) {
    check_product(shape);
    if (shape.rows == 0 || shape.columns == 0 || shape.batch == 0) return;
    if (!planned.contains({sizeof(Number), shape})) {
      emulation::not_while_recording("The first product of a shape");
      planned.emplace(sizeof(Number), shape);
    }
    const StoredSides of_c{shape.rows, shape.columns};
    check_address(a, shape.a, sides_of_a(shape), shape.batch);
    check_address(b, shape.b, sides_of_b(shape), shape.batch);
    check_address(static_cast<const Number*>(c), shape.c, of_c, shape.batch);
    if (shape.bias >= 0)
      check_address(b, {shape.bias, shape.columns, shape.b.step}, {1, shape.columns}, shape.batch);
    const Number* out = c;
    if (overlap(out, shape.c, of_c, a, shape.a, sides_of_a(shape), shape.batch) ||
        overlap(out, shape.c, of_c, b, shape.b, sides_of_b(shape), shape.batch))
      throw std::logic_error("A product overwrites its own factors.");
    emulation::start(stream, [=] {
      std::memset(workspace, kPoison, kWorkspaceBytes);
      for (std::int64_t i = 0; i < shape.batch; ++i) {
        const Number* right = b + i * shape.b.step;
        multiply_one(shape, a + shape.a.offset + i * shape.a.step, right + shape.b.offset,
                     shape.bias < 0 ? nullptr : right + shape.bias, c + shape.c.offset + i * shape.c.step,
                     scales);
      }
    });
  }
};

ProductPlans::ProductPlans() : state_(std::make_unique<State>()) {}

ProductPlans::~ProductPlans() = default;

Products::Products(ProductPlans& plans, Stream stream)
    : plans_(&plans), stream_(stream), workspace_(kWorkspaceBytes) {}

void Products::multiply(const ProductShape& shape, const float* a, const float* b, float* c,
                        ProductScales scales) {
  start_in_turn(stream_, [=, this](Stream stream) {
    plans_->state_->multiply(stream, workspace_.data(), shape, a, b, c, scales);
  });
}

void Products::multiply(const ProductShape& shape, const double* a, const double* b, double* c,
                        ProductScales scales) {
  start_in_turn(stream_, [=, this](Stream stream) {
    plans_->state_->multiply(stream, workspace_.data(), shape, a, b, c, scales);
  });
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
