#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/device/bench_tensors.h"
#include "bench/device/libtorch_forms.h"
#include "core/error.h"
#include "core/online/online_ranker.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/diagonal_covariance.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/ops/score_ranking.h"
#include "cuda/ops/tangent_kernel.h"

// Covariances: what widths are made of, whole widths from factors to bits, and taking in a round's pairs.
namespace olrank {
namespace {

constexpr std::int64_t kRoundPairs = 5;  // of a list of ten
constexpr double kLambda = 10.0;
constexpr CertaintyRule kRule{0.03, 0.0, 0.0};

std::vector<PreferencePair> round_pairs() {
  std::vector<PreferencePair> pairs;
  for (std::int32_t s = 0; s < kRoundPairs; ++s) pairs.push_back({2 * s, 2 * s + 1});
  return pairs;
}

/// A query under one network, and where its widths go.
struct Query {
  DeviceSizes sizes;
  std::shared_ptr<MadeDocs> docs;
  double scale;
  at::Tensor m;
  at::Tensor offsets;
  at::Tensor order;
  at::Tensor bits;
  at::Tensor rule;
  at::Tensor pairs;
  at::Tensor status;

  Query(const DeviceSizes& of, Stream stream)
      : sizes(of),
        docs(make_docs(of, stream, of.docs)),
        scale(1.0 / real(of.width)),
        m(empty_tensor(of, at::kDouble, {of.docs, of.docs})),
        offsets(uploaded(of, std::vector<std::int64_t>{0, of.docs})),
        order(empty_tensor(of, at::kInt, {of.docs})),
        bits(empty_tensor(of, at::kLong, {of.docs, device::order_words(of.docs)})),
        rule(uploaded(of, std::vector<CertaintyRule>{kRule})),
        pairs(uploaded(of, round_pairs())),
        status(uploaded(of, std::vector<device::CovarianceStatus>(1))) {}

  const NetworkShape& shape() const { return docs->shape; }
  at::Tensor rows() const { return docs->rows.select(0, 0); }
  const PreferencePair* pair_list() const { return data<PreferencePair>(pairs); }
  device::CovarianceStatus* state() const { return data<device::CovarianceStatus>(status); }

  /// From M to bits.
  void finish(Stream on) const {
    device::order_by_score(on, 1, data<std::int64_t>(offsets), data<float>(docs->scores),
                           data<std::int32_t>(order), nullptr);
    device::certain_by_width(on,
                             {sizes.docs, data<float>(docs->scores), data<float>(docs->magnitudes),
                              data<std::int32_t>(order), data<double>(m)},
                             data<CertaintyRule>(rule), data<std::uint64_t>(bits), nullptr, nullptr);
  }
  at::Tensor finish_in_libtorch(const at::Tensor& full) const {
    return libtorch::certain_by_width(full, docs->scores.select(0, 0), docs->magnitudes.select(0, 0),
                                      kRule);
  }

  /// Of M alone: of its lower triangle, which is all that there is.
  double gram_disagreement(const at::Tensor& full) const {
    return disagreement_of(at::tril(m), at::tril(full));
  }
  /// Of M and of the bits, where one in a thousand may hang on the last place.
  double disagreement(const at::Tensor& full, double tolerance) const {
    const at::Tensor certain = finish_in_libtorch(full).to(at::kCPU);
    const at::Tensor words = bits.to(at::kCPU);
    std::int64_t different = 0;
    for (std::int64_t a = 0; a < sizes.docs; ++a) {
      for (std::int64_t b = a + 1; b < sizes.docs; ++b) {
        const auto word = static_cast<std::uint64_t>(words[a][b / 64].item<std::int64_t>());
        different += ((word >> (b % 64) & 1U) != 0) != certain[a][b].item<bool>() ? 1 : 0;
      }
    }
    if (real(different) > 1e-3 * real(sizes.docs * sizes.docs)) return std::nan("");
    return gram_disagreement(full) <= tolerance ? 0.0 : gram_disagreement(full);
  }
  void require_sound() const {
    device::CovarianceStatus now;
    std::memcpy(&now, status.to(at::kCPU).data_ptr(), sizeof now);
    if (now.failed != 0) throw NumericError("The pairs that are measured make no covariance.");
  }
};

/// One multiplication and one addition for every number of a row of tangent factors.
double kernel_operations(const NetworkShape& shape) {
  return 2.0 * real(shape.factors());
}

/// Of pairs and documents: in every layer but the last, both documents of a pair; there, their difference.
double pair_kernel_operations(const NetworkShape& shape) {
  const NetworkLayer last = shape.layer(shape.depth - 1);
  return 2.0 * (2.0 * real(shape.factors() - last.columns - 1) + real(last.columns));
}

constexpr double kGramTolerance = 1e-9;  // sums in double, in another order, through differences

/// Widths from factors to bits, given how M is made.
template <class OfForm>
DeviceWork whole_widths(const std::shared_ptr<OfForm>& query, const std::function<void(Stream)>& gram) {
  const auto own = [=](Stream on) {
    gram(on);
    query->finish(on);
  };
  DeviceWork work = alone(own);
  work.libtorch = [=] { query->finish_in_libtorch(query->gram_in_libtorch()); };
  work.disagreement = [=](Stream on) {
    own(on);
    return query->disagreement(query->gram_in_libtorch(), kGramTolerance);
  };
  work.tolerance = kGramTolerance;
  return work;
}

class WidthCases {
 public:
  explicit WidthCases(const DeviceSizes& sizes)
      : sizes_(sizes),
        shape_(shape_of(sizes)),
        docs_(real(sizes.docs)),
        triangle_(0.5 * docs_ * (docs_ + 1.0)),
        p_(real(shape_.parameters())),
        largest_(*std::max_element(sizes.pairs.begin(), sizes.pairs.end())) {}

  std::vector<DeviceCase> all() {
    add_diagonal();
    add_doc_kernel();
    for (const std::int64_t n : sizes_.pairs) add_dual(n);
    add_primal();
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
  double rows_bytes(double docs) const { return kFloatBytes * docs * real(shape_.factors()); }

  // ---- diagonal ----

  struct Diagonal : Query {
    at::Tensor diagonal;
    at::Tensor root;
    at::Tensor work;

    Diagonal(const DeviceSizes& of, Stream stream)
        : Query(of, stream),
          diagonal(at::rand({shape().parameters()}, options_of(of, at::kDouble)) + kLambda),
          root((scale / diagonal).sqrt()),
          work(empty_tensor(of, at::kDouble, {device::diagonal_gram_workspace(shape(), of.docs)})) {}

    device::DiagonalState kept() const { return {data<double>(diagonal), data<double>(root)}; }
    void gram(Stream on) const {
      device::diagonal_gram(on, shape(), docs->view(), data<double>(root), data<double>(work),
                            data<double>(m));
    }
    at::Tensor gram_in_libtorch() const { return libtorch::diagonal_gram(shape(), rows(), root); }
  };

  void add_diagonal() {
    cases_.push_back({.name = "diagonal_covariance/add_to_diagonal",
                      .parameters = {{"k", kRoundPairs}, {"p", shape_.parameters()}},
                      .operations = 4.0 * real(kRoundPairs) * p_,
                      .bytes = 3.0 * kDoubleBytes * p_,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Diagonal>(sizes, stream);
                        return alone([=](Stream on) {
                          device::add_to_diagonal(on, query->shape(), query->docs->view(),
                                                  query->pair_list(), kRoundPairs, 1e-6, query->kept());
                        });
                      }});
    // One triangle, every unit alive: what dead units save is the kernel's gain.
    const double operations = 2.0 * p_ * triangle_;
    const double bytes = rows_bytes(docs_) + kDoubleBytes * (p_ + triangle_);
    cases_.push_back({.name = "diagonal_covariance/diagonal_gram",
                      .parameters = of_docs(),
                      .operations = operations,
                      .bytes = bytes,
                      .least_share = kWantedShare,
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Diagonal>(sizes, stream);
                        return compared(
                            [=](Stream on) { query->gram(on); }, [=] { return query->gram_in_libtorch(); },
                            [=](const at::Tensor& other) { return query->gram_disagreement(other); },
                            kGramTolerance);
                      }});
    cases_.push_back({.name = "widths/diagonal",
                      .parameters = of_docs(),
                      .operations = operations,
                      .bytes = bytes,
                      .least_share = kWantedShare,
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Diagonal>(sizes, stream);
                        return whole_widths(query, [=](Stream on) { query->gram(on); });
                      }});
  }

  // ---- dual ----

  /// A history of n pairs: their factors, and L⁻¹ twice, packed as the kernels want it and as a matrix.
  struct Dual : Query {
    std::int64_t n;
    std::shared_ptr<MadeDocs> seen;
    at::Tensor inverse;  // [n × n]
    at::Tensor factor;
    at::Tensor kernel;  // [n × docs]
    at::Tensor s;
    at::Tensor gram_work;

    Dual(const DeviceSizes& of, Stream stream, std::int64_t pairs_before)
        : Query(of, stream),
          n(pairs_before),
          seen(make_docs(of, stream, 2 * n)),
          inverse(at::tril(at::randn({n, n}, options_of(of, at::kDouble)) * (1e-3 / std::sqrt(real(n))))),
          factor(at::zeros({device::factor_numbers(n + kRoundPairs)}, options_of(of, at::kDouble))),
          kernel(empty_tensor(of, at::kDouble, {n, of.docs})),
          s(empty_tensor(of, at::kDouble, {n, of.docs})),
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
      make_kernel(stream);
      triangle(stream);
    }

    void make_kernel(Stream on) const {
      device::pair_doc_kernel(on, shape(), seen->view(), docs->view(), scale, data<double>(kernel),
                              sizes.docs);
    }
    void triangle(Stream on) const {
      device::apply_factor(on, n, data<double>(factor), sizes.docs, data<double>(kernel), data<double>(s),
                           sizes.docs);
    }
    void doc_gram(Stream on) const {
      device::doc_kernel(on, shape(), docs->view(), scale, data<double>(m));
    }
    void finish_gram(Stream on) const {
      device::dual_gram(on, n, sizes.docs, data<double>(s), sizes.docs, kLambda, data<double>(gram_work),
                        data<double>(m));
    }
    at::Tensor kernel_in_libtorch() const {
      return libtorch::pair_doc_kernel(shape(), seen->rows.select(0, 0), rows(), scale);
    }
    at::Tensor gram_in_libtorch() const {
      return libtorch::dual_gram(libtorch::doc_kernel(shape(), rows(), scale),
                                 at::mm(inverse, kernel_in_libtorch()), kLambda);
    }
  };

  void add_doc_kernel() {
    cases_.push_back(
        {.name = "tangent_kernel/doc_kernel",
         .parameters = of_docs(),
         .operations = triangle_ * kernel_operations(shape_),
         .bytes = rows_bytes(docs_) + kDoubleBytes * triangle_,
         .prepare = [sizes = sizes_](Stream stream) {
           const auto query = std::make_shared<Dual>(sizes, stream, 1);
           return compared(
               [=](Stream on) { query->doc_gram(on); },
               [=] { return libtorch::doc_kernel(query->shape(), query->rows(), query->scale); },
               [=](const at::Tensor& other) { return query->gram_disagreement(other); }, 1e-12);
         }});
  }

  void add_dual(std::int64_t n) {
    const double pairs = real(n);
    const double kernel_count = pairs * docs_ * pair_kernel_operations(shape_);
    const double triangle_count = pairs * (pairs + 1.0) * docs_;
    const double gram_count = 2.0 * pairs * triangle_;
    const double factor_bytes = 0.5 * kDoubleBytes * pairs * (pairs + 1.0);
    const double s_bytes = kDoubleBytes * pairs * docs_;
    cases_.push_back(
        {.name = "tangent_kernel/pair_doc_kernel",
         .parameters = of_pairs(n),
         .operations = kernel_count,
         .bytes = rows_bytes(2.0 * pairs + docs_) + s_bytes,
         .least_share = share_at(n),
         .least_ratio = kWantedWidthRatio,
         .prepare = [sizes = sizes_, n](Stream stream) {
           const auto query = std::make_shared<Dual>(sizes, stream, n);
           return compared(
               [=](Stream on) { query->make_kernel(on); }, [=] { return query->kernel_in_libtorch(); },
               [=](const at::Tensor& other) { return disagreement_of(query->kernel, other); }, 1e-12);
         }});
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
    cases_.push_back({.name = "inverse_factor/dual_gram",
                      .parameters = {{"n", n}, {"V", sizes_.docs}},
                      .operations = gram_count,
                      .bytes = s_bytes + 2.0 * kDoubleBytes * triangle_,
                      .least_share = share_at(n),
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto query = std::make_shared<Dual>(sizes, stream, n);
                        const at::Tensor before =
                            libtorch::doc_kernel(query->shape(), query->rows(), query->scale);
                        query->m.copy_(before);
                        const auto form = [=] { return libtorch::dual_gram(before, query->s, kLambda); };
                        DeviceWork work = alone([=](Stream on) { query->finish_gram(on); });
                        work.libtorch = [=] { form(); };
                        work.disagreement = [=](Stream on) {
                          query->m.copy_(before);  // which calls overwrite
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
                      .operations = kernel_count + triangle_count + gram_count,
                      .bytes = rows_bytes(2.0 * pairs + docs_) + factor_bytes + 2.0 * s_bytes,
                      .least_share = share_at(n),
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto query = std::make_shared<Dual>(sizes, stream, n);
                        return whole_widths(query, [=](Stream on) {
                          query->doc_gram(on);
                          query->make_kernel(on);
                          query->triangle(on);
                          query->finish_gram(on);
                        });
                      }});
  }

  /// The rows that are written stay the same ones, beyond those that are read.
  static DeviceWork append_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
    const auto query = std::make_shared<Dual>(sizes, stream, n);
    query->m.copy_(at::eye(sizes.docs, options_of(sizes, at::kDouble)));
    const at::Tensor scratch = empty_tensor(sizes, at::kDouble, {device::append_workspace(n, kRoundPairs)});
    const auto own = [=](Stream on) {
      device::append_pairs(on, n, data<double>(query->factor), sizes.docs, data<double>(query->s),
                           sizes.docs, data<double>(query->m), kLambda, query->pair_list(), kRoundPairs,
                           data<double>(scratch), query->state());
    };
    // The new rows beside the old ones: with M = I, I + ΔMΔᵀ = 3I.
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

  // ---- primal ----

  struct Primal : Query {
    at::Tensor inverse;
    at::Tensor delta;
    at::Tensor input;
    at::Tensor w;
    at::Tensor gram_work;

    Primal(const DeviceSizes& of, Stream stream)
        : Query(of, stream),
          delta(empty_tensor(of, at::kInt, {shape().parameters()})),
          input(empty_tensor(of, at::kInt, {shape().parameters()})),
          w(empty_tensor(of, at::kDouble, {of.docs, shape().parameters()})),
          gram_work(empty_tensor(of, at::kDouble, {device::inverse_gram_workspace(shape(), of.docs)})) {
      const std::int64_t p = shape().parameters();
      const at::Tensor seen = at::randn({p, 4}, options_of(of, at::kDouble)) * (0.1 / std::sqrt(real(p)));
      inverse = at::mm(seen, seen.t());
      inverse.diagonal().add_(1.0 / kLambda);
      device::fill_parameter_table(stream, shape(), table());
      gram(stream);
    }

    device::ParameterTable table() const { return {data<std::int32_t>(delta), data<std::int32_t>(input)}; }
    void gram(Stream on) const {
      device::inverse_covariance_gram(on, shape(), table(), docs->view(), scale, data<double>(inverse),
                                      data<double>(gram_work), data<double>(w), data<double>(m));
    }
    at::Tensor gram_in_libtorch() const {
      return libtorch::inverse_gram(shape(), rows(), inverse, scale).m;
    }
  };

  void add_primal() {
    const double square = p_ * p_;
    const double gram_count = 2.0 * square * docs_ + 2.0 * p_ * triangle_;
    const double gram_bytes = 0.5 * kDoubleBytes * square + 2.0 * kDoubleBytes * p_ * docs_;
    const Parameters parameters{{"V", sizes_.docs}, {"p", shape_.parameters()}};
    cases_.push_back({.name = "inverse_covariance/inverse_covariance_gram",
                      .parameters = parameters,
                      .operations = gram_count,
                      .bytes = gram_bytes,
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Primal>(sizes, stream);
                        return compared(
                            [=](Stream on) { query->gram(on); }, [=] { return query->gram_in_libtorch(); },
                            [=](const at::Tensor& other) { return query->gram_disagreement(other); },
                            kGramTolerance);
                      }});
    cases_.push_back({.name = "widths/full-primal",
                      .parameters = parameters,
                      .operations = gram_count,
                      .bytes = gram_bytes,
                      .least_share = kWantedShare,
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Primal>(sizes, stream);
                        return whole_widths(query, [=](Stream on) { query->gram(on); });
                      }});
    cases_.push_back({.name = "inverse_covariance/update_inverse_covariance",
                      .parameters = {{"k", kRoundPairs}, {"p", shape_.parameters()}},
                      .operations = real(kRoundPairs) * square,
                      .bytes = kDoubleBytes * square,
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) { return update_work(sizes, stream); }});
    cases_.push_back(
        {.name = "inverse_covariance/roots_of_inverse",
         .parameters = {{"p", shape_.parameters()}},
         .operations = 2.0 * p_,
         .bytes = 2.0 * kDoubleBytes * p_,
         .prepare = [sizes = sizes_](Stream stream) {
           const auto query = std::make_shared<Primal>(sizes, stream);
           const at::Tensor root = at::zeros({query->shape().parameters()}, options_of(sizes, at::kDouble));
           const auto in_libtorch = [=] { return (query->inverse.diagonal() * query->scale).sqrt(); };
           return compared(
               [=](Stream on) {
                 device::roots_of_inverse(on, query->shape().parameters(), query->scale,
                                          data<double>(query->inverse), data<double>(root));
               },
               [=] { return in_libtorch(); },
               [=](const at::Tensor& other) { return disagreement_of(root, other); }, 1e-14);
         }});
  }

  /// With M = I, I + ΔMΔᵀ = 3I, so that LibTorch needs no factorisation. Scaled down, so that repeats stay
  /// of one size.
  static DeviceWork update_work(const DeviceSizes& sizes, Stream stream) {
    const auto query = std::make_shared<Primal>(sizes, stream);
    const std::int64_t p = query->shape().parameters();
    constexpr double kSmall = 1e-12;
    query->m.copy_(at::eye(sizes.docs, options_of(sizes, at::kDouble)));
    const at::Tensor scratch =
        empty_tensor(sizes, at::kDouble, {device::inverse_update_workspace(p, kRoundPairs)});
    const at::Tensor other = query->inverse.clone();
    const at::Tensor pairs = query->w.narrow(0, 0, 2 * kRoundPairs).view({kRoundPairs, 2, p});
    const auto update = [=](Stream on, double scale) {
      device::update_inverse_covariance(on, p, sizes.docs, data<double>(query->w), data<double>(query->m),
                                        scale, query->pair_list(), kRoundPairs, data<double>(scratch),
                                        data<double>(query->inverse), query->state());
    };
    const auto update_in_libtorch = [=](double scale) {
      const at::Tensor difference = pairs.select(1, 0) - pairs.select(1, 1);
      other.addmm_(difference.t(), difference, 1.0, -scale / 3.0);
    };
    DeviceWork work = alone([=](Stream on) { update(on, kSmall); });
    work.libtorch = [=] { update_in_libtorch(kSmall); };
    work.disagreement = [=](Stream on) {
      const at::Tensor before = query->inverse.clone();
      update(on, query->scale);
      update_in_libtorch(query->scale);
      query->require_sound();
      return disagreement_of(at::tril(query->inverse - before), at::tril(other - before));
    };
    work.tolerance = 1e-9;
    return work;
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  double docs_;
  double triangle_;
  double p_;
  std::int64_t largest_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> width_cases(const DeviceSizes& sizes) {
  return WidthCases(sizes).all();
}

}  // namespace olrank
