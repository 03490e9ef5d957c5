#include <algorithm>

#include "bench/device/bench_tensors.h"
#include "bench/device/libtorch_forms.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/inverse_factor.h"

// What a rebuild of a full covariance, or a check against a fresh factorisation, adds to the library's
// factorisation of the matrix. The library waits, so it cannot be captured and is not measured here.
namespace olrank {
namespace {

constexpr double kMatrixLambda = 10.0;

class RebuildCases {
 public:
  explicit RebuildCases(const DeviceSizes& sizes)
      : sizes_(sizes),
        shape_(shape_of(sizes)),
        p_(shape_.parameters()),
        n_(*std::max_element(sizes.pairs.begin(), sizes.pairs.end())) {}

  std::vector<DeviceCase> all() {
    add_pair_kernel();
    add_pair_covariance();
    add_pack_factor();
    add_status();
    add_mirror();
    add_copies();
    return std::move(cases_);
  }

 private:
  at::Tensor square(std::int64_t side) const { return empty_tensor(sizes_, at::kDouble, {side, side}); }

  void add_pair_kernel() {
    const double numbers = 0.5 * real(n_) * real(n_ + 1);
    cases_.push_back(
        {.name = "covariance_matrix/pair_kernel",
         .parameters = {{"n", n_}, {"m", sizes_.width}, {"d", sizes_.features}},
         .operations = numbers * 8.0 * real(shape_.factors()),
         .bytes = 2.0 * kFloatBytes * real(n_ * shape_.factors()) + kDoubleBytes * numbers,
         .prepare = [*this](Stream stream) {
           const auto docs = make_docs(sizes_, stream, 2 * n_);
           const at::Tensor b = square(n_);
           const at::Tensor work = empty_tensor(sizes_, at::kDouble, {device::pair_kernel_workspace(n_)});
           const double scale = 1.0 / real(sizes_.width);
           return compared(
               [=](Stream on) {
                 device::pair_kernel(on, docs->shape, docs->view(), scale, kMatrixLambda,
                                     data<double>(work), data<double>(b));
               },
               [=, n = n_] {
                 const at::Tensor rows = docs->rows.select(0, 0);
                 const at::Tensor sides =
                     libtorch::pair_doc_kernel(docs->shape, rows, rows, scale).view({n, n, 2});
                 at::Tensor sum = sides.select(2, 0) - sides.select(2, 1);
                 sum.diagonal().add_(kMatrixLambda);
                 return sum;
               },
               [=](const at::Tensor& other) { return disagreement_of(at::tril(b), at::tril(other)); },
               1e-12);
         }});
  }

  void add_pair_covariance() {
    constexpr std::int64_t kPairs = 256;
    const double numbers = 0.5 * real(p_) * real(p_ + 1);
    cases_.push_back(
        {.name = "covariance_matrix/pair_covariance",
         .parameters = {{"n", kPairs}, {"p", p_}},
         .operations = 2.0 * real(kPairs) * numbers,
         .bytes = 2.0 * kDoubleBytes * numbers,
         .prepare = [*this](Stream stream) {
           const auto docs = make_docs(sizes_, stream, 2 * kPairs);
           const at::Tensor a = square(p_);
           const at::Tensor work =
               empty_tensor(sizes_, at::kDouble, {device::pair_covariance_workspace(p_)});
           const at::Tensor delta = empty_tensor(sizes_, at::kInt, {p_});
           const at::Tensor input = empty_tensor(sizes_, at::kInt, {p_});
           const device::ParameterTable table{data<std::int32_t>(delta), data<std::int32_t>(input)};
           device::fill_parameter_table(stream, docs->shape, table);
           const double scale = 1.0 / real(sizes_.width);
           return compared(
               [=, held = std::make_pair(delta, input)](Stream on) {
                 device::pair_covariance(on, docs->shape, table, docs->view(), scale, kMatrixLambda,
                                         data<double>(work), data<double>(a));
               },
               [=, p = p_] {
                 const at::Tensor sides =
                     libtorch::gradients(docs->shape, docs->rows.select(0, 0)).view({kPairs, 2, p});
                 const at::Tensor g = sides.select(1, 0) - sides.select(1, 1);
                 at::Tensor sum = at::mm(g.t(), g) * scale;
                 sum.diagonal().add_(kMatrixLambda);
                 return sum;
               },
               [=](const at::Tensor& other) { return disagreement_of(at::tril(a), at::tril(other)); },
               1e-12);
         }});
  }

  void add_pack_factor() {
    const double numbers = 0.5 * real(n_) * real(n_ + 1);
    cases_.push_back({.name = "covariance_matrix/pack_factor",
                      .parameters = {{"n", n_}},
                      .bytes = 2.0 * kDoubleBytes * numbers,
                      .prepare = [*this](Stream) {
                        const at::Tensor inverse = at::randn({n_, n_}, options_of(sizes_, at::kDouble));
                        const at::Tensor factor =
                            empty_tensor(sizes_, at::kDouble, {device::factor_numbers(n_)});
                        return alone([=, n = n_](Stream on) {
                          device::pack_factor(on, n, data<double>(inverse), data<double>(factor));
                        });
                      }});
  }

  void add_status() {
    cases_.push_back({.name = "covariance_matrix/status_of_factor",
                      .parameters = {{"n", n_}},
                      .bytes = kDoubleBytes * real(n_),
                      .prepare = [*this](Stream) {
                        const at::Tensor factor = at::eye(n_, options_of(sizes_, at::kDouble));
                        const at::Tensor status =
                            uploaded(sizes_, std::vector<device::CovarianceStatus>(1));
                        return alone([=, n = n_](Stream on) {
                          device::status_of_factor(on, n, data<double>(factor), kMatrixLambda,
                                                   data<device::CovarianceStatus>(status));
                        });
                      }});
  }

  void add_mirror() {
    cases_.push_back({.name = "covariance_matrix/mirror_lower",
                      .parameters = {{"n", n_}},
                      .bytes = kDoubleBytes * real(n_) * real(n_ - 1),
                      .prepare = [*this](Stream) {
                        const at::Tensor a = at::randn({n_, n_}, options_of(sizes_, at::kDouble));
                        return compared(
                            [=, n = n_](Stream on) { device::mirror_lower(on, n, data<double>(a)); },
                            [=] { return at::tril(a) + at::tril(a, -1).t(); },
                            [=](const at::Tensor& other) { return disagreement_of(a, other); }, 0.0);
                      }});
  }

  void add_copies() {
    const auto copied = [&](const std::string& name, double bytes, const auto& copy) {
      cases_.push_back(
          {.name = name, .parameters = {{"n", n_}}, .bytes = bytes, .prepare = [*this, copy](Stream) {
             const at::Tensor from = at::randn({n_, n_}, options_of(sizes_, at::kDouble));
             const at::Tensor to = empty_tensor(sizes_, at::kDouble, {n_, n_});
             return alone([=, n = n_](Stream on) { copy(on, n, data<double>(from), data<double>(to)); });
           }});
    };
    const double numbers = real(n_) * real(n_);
    copied("covariance_matrix/copy_matrix", 2.0 * kDoubleBytes * numbers,
           [](Stream on, std::int64_t n, const double* from, double* to) {
             device::copy_matrix(on, n, n, {from, n}, to, n);
           });
    copied("covariance_matrix/copy_lower", 1.5 * kDoubleBytes * numbers,
           [](Stream on, std::int64_t n, const double* from, double* to) {
             device::copy_lower(on, n, {from, n}, 0.0, to, n);
           });
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  std::int64_t p_;
  std::int64_t n_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> rebuild_cases(const DeviceSizes& sizes) {
  return RebuildCases(sizes).all();
}

}  // namespace olrank
