#include <algorithm>
#include <cmath>

#include "bench/device/width_query.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/ops/tangent_kernel.h"

// The full covariance by the factor of its kernel matrix, after n pairs.
namespace olrank {
namespace {

/// A multiplication and an addition per number of a row of tangent factors.
double kernel_operations(const NetworkShape& shape) {
  return 2.0 * real(shape.factors());
}

/// For pairs and documents: both documents of a pair in every layer except the last, where their difference
/// is enough.
double pair_kernel_operations(const NetworkShape& shape) {
  const NetworkLayer last = shape.layer(shape.depth - 1);
  return 2.0 * (2.0 * real(shape.factors() - last.columns - 1) + real(last.columns));
}

class DualCases {
 public:
  explicit DualCases(const DeviceSizes& sizes)
      : sizes_(sizes),
        shape_(shape_of(sizes)),
        docs_(real(sizes.docs)),
        triangle_(0.5 * docs_ * (docs_ + 1.0)),
        largest_(*std::max_element(sizes.pairs.begin(), sizes.pairs.end())) {}

  std::vector<DeviceCase> all() {
    add_query_kernels(0);
    for (const std::int64_t n : sizes_.pairs) add_dual(n);
    return std::move(cases_);
  }

 private:
  using Parameters = std::vector<std::pair<std::string, std::int64_t>>;

  Parameters of_docs() const { return {{"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}}; }
  Parameters of_pairs(std::int64_t n) const {
    Parameters parameters = of_docs();
    parameters.insert(parameters.begin(), {"n", n});
    return parameters;
  }
  double share_at(std::int64_t n) const { return n == largest_ ? kWantedShare : 0.0; }

  /// A history of n pairs: their factors, and L⁻¹ in two layouts, packed for the kernels and as a matrix.
  struct Dual : Query {
    std::int64_t n;
    std::shared_ptr<MadeDocs> seen;
    at::Tensor inverse;  // [n × n]
    at::Tensor factor;
    at::Tensor kernel;  // [n × docs]
    at::Tensor s;
    at::Tensor apply_work;
    at::Tensor gram_work;

    Dual(const DeviceSizes& of, Stream stream, std::int64_t pairs_before)
        : Query(of, stream),
          n(pairs_before),
          seen(make_docs(of, stream, 2 * n)),
          inverse(at::tril(at::randn({n, n}, options_of(of, at::kDouble)) * (1e-3 / std::sqrt(real(n))))),
          factor(at::zeros({device::factor_numbers(n + kRoundPairs)}, options_of(of, at::kDouble))),
          kernel(empty_tensor(of, at::kDouble, {n, of.docs})),
          s(empty_tensor(of, at::kDouble, {n, of.docs})),
          apply_work(empty_tensor(of, at::kDouble, {device::apply_factor_workspace(n, of.docs)})),
          gram_work(empty_tensor(of, at::kDouble, {device::dual_gram_workspace(n, of.docs)})) {
      inverse.diagonal().add_(0.01);
      constexpr std::int64_t kBlock = InverseFactor::kBlock;
      for (std::int64_t b = 0; b * kBlock < n; ++b) {
        const std::int64_t rows = std::min(kBlock, n - b * kBlock);
        const std::int64_t columns = std::min(kBlock * (b + 1), n);
        factor.narrow(0, device::factor_offset(b), kBlock * InverseFactor::stride(b))
            .view({kBlock, InverseFactor::stride(b)})
            .narrow(0, 0, rows)
            .narrow(1, 0, columns)
            .copy_(inverse.narrow(0, b * kBlock, rows).narrow(1, 0, columns));
      }
      make_kernels(stream, n);
      triangle(stream);
    }

    /// K_VV into m, and K_nV of the first `count` pairs.
    void make_kernels(Stream on, std::int64_t count) const {
      device::FactorRows pairs = seen->view();
      pairs.docs = 2 * count;
      device::query_kernels(on, shape(), docs->view(), pairs, scale, data<double>(m), data<double>(kernel),
                            sizes.docs);
    }
    void triangle(Stream on) const {
      device::apply_factor(on, n, data<double>(factor), sizes.docs, data<double>(kernel),
                           data<double>(apply_work), data<double>(s), sizes.docs);
    }
    void finish_gram(Stream on) const {
      device::dual_gram(on, n, sizes.docs, data<double>(s), sizes.docs, kLambda, data<double>(gram_work),
                        data<double>(m));
    }
    at::Tensor kernel_in_libtorch() const {
      return libtorch::pair_doc_kernel(shape(), seen->rows.select(0, 0), rows(), scale);
    }
    at::Tensor doc_kernel_in_libtorch() const { return libtorch::doc_kernel(shape(), rows(), scale); }
    at::Tensor gram_in_libtorch() const {
      return libtorch::dual_gram(doc_kernel_in_libtorch(), at::mm(inverse, kernel_in_libtorch()), kLambda);
    }
  };

  double query_kernels_operations(double pairs) const {
    return pairs * docs_ * pair_kernel_operations(shape_) + triangle_ * kernel_operations(shape_);
  }

  /// K_VV, and K_nV unless n = 0.
  void add_query_kernels(std::int64_t n) {
    const double pairs = real(n);
    cases_.push_back(
        {.name = "tangent_kernel/query_kernels",
         .parameters = of_pairs(n),
         .operations = query_kernels_operations(pairs),
         .bytes = rows_bytes(shape_, 2.0 * pairs + docs_) + kDoubleBytes * (pairs * docs_ + triangle_),
         .least_share = share_at(n),
         .least_ratio = n > 0 ? kWantedWidthRatio : 0.0,
         .prepare = [sizes = sizes_, n](Stream stream) {
           const auto query = std::make_shared<Dual>(sizes, stream, std::max<std::int64_t>(n, 1));
           const auto own = [=](Stream on) { query->make_kernels(on, n); };
           DeviceWork work = alone(own);
           work.libtorch = [=] {
             query->doc_kernel_in_libtorch();
             if (n > 0) query->kernel_in_libtorch();
           };
           work.disagreement = [=](Stream on) {
             own(on);
             const double of_docs = query->gram_disagreement(query->doc_kernel_in_libtorch());
             if (n == 0) return of_docs;
             return std::max(of_docs, disagreement_of(query->kernel, query->kernel_in_libtorch()));
           };
           work.tolerance = 1e-12;
           return work;
         }});
  }

  void add_dual(std::int64_t n) {
    const double pairs = real(n);
    const double triangle_count = pairs * (pairs + 1.0) * docs_;
    const double gram_count = 2.0 * pairs * triangle_;
    const double factor_bytes = 0.5 * kDoubleBytes * pairs * (pairs + 1.0);
    const double s_bytes = kDoubleBytes * pairs * docs_;
    add_query_kernels(n);
    cases_.push_back({.name = "inverse_factor/apply_factor",
                      .parameters = {{"n", n}, {"V", sizes_.docs}},
                      .operations = triangle_count,
                      .bytes = factor_bytes + 2.0 * s_bytes,
                      .least_share = share_at(n),
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto query = std::make_shared<Dual>(sizes, stream, n);
                        return compared(
                            [=](Stream on) { query->triangle(on); },
                            [=] { return at::mm(query->inverse, query->kernel); },
                            [=](const at::Tensor& other) { return disagreement_of(query->s, other); },
                            1e-10);
                      }});
    cases_.push_back({.name = "inverse_factor/apply_factor_transposed",
                      .parameters = {{"n", n}},
                      .operations = pairs * (pairs + 1.0),
                      .bytes = factor_bytes,
                      .least_share = share_at(n),
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto query = std::make_shared<Dual>(sizes, stream, n);
                        const at::Tensor x = at::randn({n}, options_of(sizes, at::kDouble));
                        const at::Tensor y = at::empty_like(x);
                        return compared(
                            [=](Stream on) {
                              device::apply_factor_transposed(on, n, data<double>(query->factor),
                                                              data<double>(x), data<double>(y));
                            },
                            [=] { return at::mv(query->inverse.t(), x); },
                            [=](const at::Tensor& other) { return disagreement_of(y, other); }, 1e-10);
                      }});
    cases_.push_back({.name = "inverse_factor/dual_gram",
                      .parameters = {{"n", n}, {"V", sizes_.docs}},
                      .operations = gram_count,
                      .bytes = s_bytes + 2.0 * kDoubleBytes * triangle_,
                      .least_share = share_at(n),
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto query = std::make_shared<Dual>(sizes, stream, n);
                        const at::Tensor before = query->doc_kernel_in_libtorch();
                        query->m.copy_(before);
                        const auto form = [=] { return libtorch::dual_gram(before, query->s, kLambda); };
                        DeviceWork work = alone([=](Stream on) { query->finish_gram(on); });
                        work.libtorch = [=] { form(); };
                        work.disagreement = [=](Stream on) {
                          query->m.copy_(before);  // overwritten by each call
                          query->finish_gram(on);
                          return query->gram_disagreement(form());
                        };
                        work.tolerance = kGramTolerance;
                        return work;
                      }});
    cases_.push_back(
        {.name = "inverse_factor/append_pairs",
         .parameters = {{"n", n}, {"k", kRoundPairs}, {"V", sizes_.docs}},
         .operations = pairs * (pairs + 1.0) * real(kRoundPairs),
         .bytes = factor_bytes + 2.0 * kDoubleBytes * pairs * real(kRoundPairs),
         .least_share = share_at(n),
         .prepare = [sizes = sizes_, n](Stream stream) { return append_work(sizes, stream, n); }});
    cases_.push_back({.name = "widths/full-dual",
                      .parameters = of_pairs(n),
                      .operations = query_kernels_operations(pairs) + triangle_count + gram_count,
                      .bytes = rows_bytes(shape_, 2.0 * pairs + docs_) + factor_bytes + 2.0 * s_bytes,
                      .least_share = share_at(n),
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto query = std::make_shared<Dual>(sizes, stream, n);
                        return whole_widths(query, [=](Stream on) {
                          query->make_kernels(on, n);
                          query->triangle(on);
                          query->finish_gram(on);
                        });
                      }});
  }

  /// Every call writes the same rows, beyond those that it reads.
  static DeviceWork append_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
    const auto query = std::make_shared<Dual>(sizes, stream, n);
    query->m.copy_(at::eye(sizes.docs, options_of(sizes, at::kDouble)));
    const at::Tensor scratch = empty_tensor(sizes, at::kDouble, {device::append_workspace(n, kRoundPairs)});
    const auto own = [=](Stream on) {
      device::append_pairs(on, n, data<double>(query->factor), sizes.docs, data<double>(query->s),
                           sizes.docs, data<double>(query->m), kLambda, query->pair_list(), kRoundPairs,
                           data<double>(scratch), query->state());
    };
    // With M = I, I + ΔMΔᵀ = 3I.
    const auto form = [=] {
      const at::Tensor pairs = query->s.narrow(1, 0, 2 * kRoundPairs).view({n, kRoundPairs, 2});
      const at::Tensor u = pairs.select(2, 0) - pairs.select(2, 1);
      return at::mm(u.t(), query->inverse) * (-1.0 / std::sqrt(3.0 * kLambda));
    };
    const auto differs = [=](const at::Tensor& other) {
      query->require_sound();
      std::vector<at::Tensor> rows;
      for (std::int64_t row = n; row < n + kRoundPairs; ++row)
        rows.push_back(query->factor.narrow(0, device::factor_row(row), n));
      return disagreement_of(at::stack(rows), other);
    };
    return compared(own, form, differs, 1e-10);
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  double docs_;
  double triangle_;
  std::int64_t largest_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> dual_cases(const DeviceSizes& sizes) {
  return DualCases(sizes).all();
}

}  // namespace olrank
