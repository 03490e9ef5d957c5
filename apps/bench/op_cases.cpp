#include "apps/bench/op_cases.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/ops/blas.h"
#include "core/ops/diagonal_covariance.h"
#include "core/ops/folded_pair_gradient.h"
#include "core/ops/inverse_covariance.h"
#include "core/ops/inverse_factor.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/pair_width.h"
#include "core/ops/precise_scores.h"
#include "core/ops/tangent_factors.h"
#include "core/ops/tangent_kernel.h"
#include "models/posterior/posterior.h"

namespace olrank {
namespace {

/// The width at which the inverse of all parameters has its place: p = 2,192 at 136 features.
constexpr std::int64_t kNarrow = 16;
constexpr std::int64_t kRoundPairs = 4;
constexpr double kDouble = sizeof(double);
constexpr double kFloat = sizeof(float);

double real(std::int64_t count) {
  return static_cast<double>(count);
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

template <class Number>
std::vector<Number> uniform(std::int64_t count, std::uint32_t place) {
  RngStream draws(make_key({.seed = 1, .purpose = Purpose::kProbe}), place);
  std::vector<Number> values(size(count));
  for (Number& value : values) value = static_cast<Number>(draws.uniform());
  return values;
}

/// Documents with their network: what most operations work on.
struct Documents {
  Documents(const NetworkShape& of_shape, std::int64_t count, std::uint32_t place, int threads)
      : shape(of_shape),
        context({}, threads),
        features(uniform<float>(count * shape.inputs, place)),
        theta(size(shape.parameters())),
        factors(size(count * shape.factors())),
        docs(count) {
    initialise(shape, Initialisation::kSymmetric,
               make_key({.seed = 1, .purpose = Purpose::kInitialisation}), theta);
    tangent_factors(context, shape, theta, matrix(), factors);
  }
  FeatureMatrix matrix() const { return {features.data(), docs, shape.inputs}; }
  TangentFactors rows() const { return {factors.data(), docs}; }

  NetworkShape shape;
  ExecutionContext context;
  std::vector<float> features;
  std::vector<float> theta;
  std::vector<float> factors;
  std::int64_t docs;
};

std::shared_ptr<Documents> documents(const NetworkShape& shape, std::int64_t count, const OpSizes& sizes,
                                     std::uint32_t place = 1) {
  return std::make_shared<Documents>(shape, count, place, sizes.threads);
}

/// One multiplication and one addition for every number of a row of tangent factors: what an inner product
/// of two gradients takes.
double kernel_operations(const NetworkShape& shape) {
  return 2.0 * real(shape.factors());
}

/// Of pairs and documents: in every layer but the last, both documents of a pair; there, their difference.
double pair_kernel_operations(const NetworkShape& shape) {
  const NetworkLayer last = shape.layer(shape.depth - 1);
  return 2.0 * (2.0 * real(shape.factors() - last.columns - 1) + real(last.columns));
}

/// Multiplications behind diagonal_gram: units are left out where they are dead, which data decide.
double diagonal_operations(const Documents& data) {
  double products = 0.0;
  for (std::int64_t l = 0; l < data.shape.depth; ++l) {
    const NetworkLayer layer = data.shape.layer(l);
    for (std::int64_t unit = 0; unit < layer.rows; ++unit) {
      double alive = 0.0;
      for (std::int64_t doc = 0; doc < data.docs; ++doc)
        alive += data.rows().row(data.shape, doc)[layer.delta + unit] != 0.0F ? 1.0 : 0.0;
      // A symmetric matrix of inner products: one triangle.
      products += real(layer.columns) * 0.5 * alive * (alive + 1.0);
    }
  }
  return 2.0 * products;
}

InverseFactor grown_factor(ExecutionContext& context, std::int64_t pairs) {
  InverseFactor factor;
  while (factor.size() < pairs) {
    const std::int64_t added = std::min(factor.room(), pairs - factor.size());
    std::vector<double> cross = uniform<double>(factor.size() * added, 5);
    for (double& value : cross) value *= 1e-3;
    std::vector<double> corner(size(added * added), 0.01);
    for (std::int64_t i = 0; i < added; ++i) corner[size(i * added + i)] = 4.0;
    append(context, factor, added, cross.data(), added, corner.data(), added);
  }
  return factor;
}

class OpCases {
 public:
  explicit OpCases(const OpSizes& sizes)
      : sizes_(sizes),
        shape_(ntk_shape(sizes.features, sizes.width, sizes.depth)),
        narrow_(ntk_shape(sizes.features, kNarrow, sizes.depth)) {}

  std::vector<BenchCase> all() {
    add_products();
    add_network();
    add_kernels();
    add_factor();
    add_inverse();
    add_diagonal();
    add_widths();
    add_training();
    add_steps();
    add_linear();
    return std::move(cases_);
  }

 private:
  using Parameters = std::vector<std::pair<std::string, std::int64_t>>;

  /// `prepare` returns the work; what it works on lives in the work.
  void add(const std::string& name, Parameters parameters, double operations, double bytes,
           CeilingKind ceiling, std::function<std::function<void()>()> prepare) {
    if (sizes_.threads > 1) parameters.emplace_back("threads", sizes_.threads);
    cases_.push_back({name, std::move(parameters), operations, bytes, ceiling, std::move(prepare)});
  }

  Parameters of_docs() const { return {{"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}}; }
  Parameters of_pairs() const {
    return {{"n", sizes_.pairs}, {"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}};
  }
  Parameters of_narrow() const { return {{"V", sizes_.docs}, {"p", narrow_.parameters()}}; }

  template <class Number>
  void add_product(const std::string& name, CeilingKind ceiling) {
    const std::int64_t side = sizes_.docs;
    add(name, {{"side", side}}, 2.0 * real(side * side * side), 3.0 * real(side * side) * sizeof(Number),
        ceiling, [side] {
          const auto a = uniform<Number>(side * side, 1);
          return [side, a, c = std::vector<Number>(a.size())]() mutable {
            blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, side, side, side, Number{1}, a.data(),
                       side, a.data(), side, Number{0}, c.data(), side);
          };
        });
  }

  void add_products() {
    add_product<float>("blas/gemm_float", CeilingKind::kGemmFloat);
    add_product<double>("blas/gemm_double", CeilingKind::kGemmDouble);
  }

  void add_network() {
    const OpSizes sizes = sizes_;
    const NetworkShape shape = shape_;
    const double forward = 2.0 * real(sizes.docs * shape.parameters());
    const double read = kFloat * real(sizes.docs * shape.inputs + shape.parameters());
    add("relu_network/score_docs", of_docs(), forward, read, CeilingKind::kGemmFloat, [sizes, shape] {
      return [data = documents(shape, sizes.docs, sizes),
              scores = std::vector<float>(size(sizes.docs))]() mutable {
        score_docs(data->context, data->shape, data->theta, data->matrix(), scores);
      };
    });
    add("precise_scores/precise_scores", of_docs(), forward,
        read + kDouble * real(shape.parameters() + sizes.docs), CeilingKind::kGemmDouble, [sizes, shape] {
          const auto data = documents(shape, sizes.docs, sizes);
          return [data, theta = std::vector<double>(data->theta.begin(), data->theta.end()),
                  scores = std::vector<double>(size(sizes.docs))]() mutable {
            precise_scores(data->context.scratch(), data->shape, theta, data->matrix(), scores);
          };
        });
    add("tangent_factors/tangent_factors", of_docs(), forward,
        read + kFloat * real(sizes.docs * shape.factors()), CeilingKind::kGemmFloat, [sizes, shape] {
          return [data = documents(shape, sizes.docs, sizes)] {
            tangent_factors(data->context, data->shape, data->theta, data->matrix(), data->factors);
          };
        });
    add("tangent_factors/expand_docs", of_docs(), real(sizes.docs * shape.parameters()),
        kDouble * real(sizes.docs * shape.parameters()), CeilingKind::kCopy, [sizes, shape] {
          const std::int64_t p = shape.parameters();
          return [data = documents(shape, sizes.docs, sizes), p,
                  rows = std::vector<double>(size(sizes.docs * p))]() mutable {
            expand_docs(data->shape, data->rows(), 1.0, 0, p, rows.data(), p);
          };
        });
    add("tangent_factors/gradient_products", of_docs(), forward, 0.0, CeilingKind::kGemmDouble,
        [sizes, shape] {
          return [data = documents(shape, sizes.docs, sizes), v = uniform<double>(shape.parameters(), 2),
                  products = std::vector<double>(size(sizes.docs))]() mutable {
            gradient_products(data->context, data->shape, data->rows(), v, products);
          };
        });
    add("tangent_factors/gradient_sum", of_docs(), forward, 0.0, CeilingKind::kGemmDouble, [sizes, shape] {
      return [data = documents(shape, sizes.docs, sizes), weights = uniform<double>(sizes.docs, 2),
              sum = std::vector<double>(size(shape.parameters()))]() mutable {
        gradient_sum(data->context, data->shape, data->rows(), weights, sum);
      };
    });
  }

  void add_kernels() {
    const OpSizes sizes = sizes_;
    const NetworkShape shape = shape_;
    const double triangle = 0.5 * real(sizes.docs * (sizes.docs + 1));
    add("tangent_kernel/doc_kernel", of_docs(), triangle * kernel_operations(shape), 0.0,
        CeilingKind::kGemmDouble, [sizes, shape] {
          return [data = documents(shape, sizes.docs, sizes),
                  kernel = std::vector<double>(size(sizes.docs * sizes.docs))]() mutable {
            doc_kernel(data->context, data->shape, data->rows(), 1.0, kernel.data());
          };
        });
    add("tangent_kernel/pair_doc_kernel", of_pairs(),
        real(sizes.pairs * sizes.docs) * pair_kernel_operations(shape), 0.0, CeilingKind::kGemmDouble,
        [sizes, shape] {
          return
              [data = documents(shape, sizes.docs, sizes),
               history = documents(shape, 2 * sizes.pairs, sizes, 2),
               kernel = std::vector<double>(size(sizes.pairs * sizes.docs)), docs = sizes.docs]() mutable {
                pair_doc_kernel(data->context, data->shape, history->rows(), data->rows(), 1.0,
                                kernel.data(), docs);
              };
        });
    add("tangent_kernel/pair_kernel", {{"n", sizes.pairs}, {"k", kRoundPairs}, {"m", sizes.width}},
        real(sizes.pairs * kRoundPairs) * pair_kernel_operations(shape), 0.0, CeilingKind::kGemmDouble,
        [sizes, shape] {
          return [fresh = documents(shape, 2 * kRoundPairs, sizes),
                  history = documents(shape, 2 * sizes.pairs, sizes, 2),
                  kernel = std::vector<double>(size(sizes.pairs * kRoundPairs))]() mutable {
            pair_kernel(fresh->context, fresh->shape, history->rows(), fresh->rows(), 1.0, kernel.data(),
                        kRoundPairs);
          };
        });
  }

  void add_factor() {
    const OpSizes sizes = sizes_;
    const double n = real(sizes.pairs);
    add("inverse_factor/apply", {{"n", sizes.pairs}, {"V", sizes.docs}}, n * (n + 1.0) * real(sizes.docs),
        kDouble * 0.5 * n * n, CeilingKind::kGemmDouble, [sizes] {
          auto context = std::make_shared<ExecutionContext>(Device{}, sizes.threads);
          auto factor = std::make_shared<InverseFactor>(grown_factor(*context, sizes.pairs));
          return [context, factor, x = uniform<double>(sizes.pairs * sizes.docs, 3),
                  y = std::vector<double>(size(sizes.pairs * sizes.docs)), docs = sizes.docs]() mutable {
            apply(*context, *factor, docs, x.data(), y.data(), docs);
          };
        });
    add("inverse_factor/subtract_gram", {{"n", sizes.pairs}, {"V", sizes.docs}},
        n * real(sizes.docs * (sizes.docs + 1)), kDouble * n * real(sizes.docs), CeilingKind::kGemmDouble,
        [sizes] {
          auto context = std::make_shared<ExecutionContext>(Device{}, sizes.threads);
          return [context, x = uniform<double>(sizes.pairs * sizes.docs, 3),
                  c = std::vector<double>(size(sizes.docs * sizes.docs)), n = sizes.pairs,
                  docs = sizes.docs]() mutable {
            subtract_gram(*context, n, docs, x.data(), docs, c.data(), docs);
          };
        });
  }

  void add_inverse() {
    const OpSizes sizes = sizes_;
    const NetworkShape narrow = narrow_;
    const double p = real(narrow.parameters());
    const double square = p * p;
    const auto inverse = [narrow] {
      auto values = std::make_shared<std::vector<double>>(size(narrow.parameters() * narrow.parameters()));
      set_inverse_covariance(narrow.parameters(), 10.0, values->data());
      return values;
    };
    // A⁻¹ is read for P, then read and written for the update.
    add("inverse_covariance/update_inverse_covariance", {{"k", kRoundPairs}, {"p", narrow.parameters()}},
        2.0 * square * real(kRoundPairs) + square * real(kRoundPairs), kDouble * 2.0 * square,
        CeilingKind::kCopy, [sizes, narrow, inverse] {
          return [fresh = documents(narrow, 2 * kRoundPairs, sizes), values = inverse()] {
            update_inverse_covariance(fresh->context, fresh->shape, fresh->rows(), 1.0 / kNarrow,
                                      values->data());
          };
        });
    // Half of the symmetric A⁻¹ is multiplied.
    add("inverse_covariance/inverse_covariance_gram", of_narrow(),
        square * real(sizes.docs) + p * real(sizes.docs * (sizes.docs + 1)), kDouble * square,
        CeilingKind::kGemmDouble, [sizes, narrow, inverse] {
          return [data = documents(narrow, sizes.docs, sizes), values = inverse(),
                  m = std::vector<double>(size(sizes.docs * sizes.docs))]() mutable {
            inverse_covariance_gram(data->context, data->shape, data->rows(), 1.0 / kNarrow, values->data(),
                                    m.data());
          };
        });
  }

  void add_diagonal() {
    const OpSizes sizes = sizes_;
    const NetworkShape shape = shape_;
    add("diagonal_covariance/add_to_diagonal", {{"k", kRoundPairs}, {"p", shape.parameters()}},
        3.0 * real(kRoundPairs * shape.parameters()), kDouble * 2.0 * real(shape.parameters()),
        CeilingKind::kCopy, [sizes, shape] {
          return [fresh = documents(shape, 2 * kRoundPairs, sizes),
                  diagonal = std::vector<double>(size(shape.parameters()), 10.0)]() mutable {
            add_to_diagonal(fresh->context, fresh->shape, fresh->rows(), 1e-6, diagonal);
          };
        });
    const double operations = diagonal_operations(Documents(shape, sizes.docs, 1, 1));
    add("diagonal_covariance/diagonal_gram", of_docs(), operations, 0.0, CeilingKind::kGemmDouble,
        [sizes, shape] {
          return [data = documents(shape, sizes.docs, sizes),
                  weights = std::vector<double>(size(shape.parameters()), 0.1),
                  m = std::vector<double>(size(sizes.docs * sizes.docs))]() mutable {
            diagonal_gram(data->context, data->shape, data->rows(), 1.0, weights, m.data());
          };
        });
  }

  void add_widths() {
    const OpSizes sizes = sizes_;
    const double square = real(sizes.docs * sizes.docs);
    add("pair_width/pair_width_sq", {{"V", sizes.docs}}, 1.5 * square, kDouble * 1.5 * square,
        CeilingKind::kCopy, [sizes] {
          auto context = std::make_shared<ExecutionContext>(Device{}, sizes.threads);
          auto m = uniform<double>(sizes.docs * sizes.docs, 4);
          for (std::int64_t i = 0; i < sizes.docs; ++i) m[size(i * sizes.docs + i)] += 2.0;
          return [context, docs = sizes.docs, m, width_sq = std::vector<double>(m.size())]() mutable {
            pair_width_sq(*context, docs, m.data(), width_sq.data());
          };
        });
    add_posterior("widths/diagonal", Covariance::kDiagonal, 100,
                  diagonal_operations(Documents(shape_, sizes.docs, 1, 1)));
    const double n = real(sizes.pairs);
    add_posterior("widths/full", Covariance::kFull, sizes.pairs,
                  n * n * real(sizes.docs) + n * real(sizes.docs) * pair_kernel_operations(shape_) +
                      n * real(sizes.docs * sizes.docs));
  }

  /// The squared widths of all pairs of a query's documents, after `pairs` observed ones.
  void add_posterior(const std::string& name, Covariance covariance, std::int64_t pairs,
                     double operations) {
    const OpSizes sizes = sizes_;
    const NetworkShape shape = shape_;
    Parameters parameters = of_docs();
    parameters.insert(parameters.begin(), {"n", pairs});
    add(name, std::move(parameters), operations, 0.0, CeilingKind::kGemmDouble,
        [sizes, shape, covariance, pairs] {
          PosteriorSpec spec;
          spec.shape = shape;
          spec.covariance = covariance;
          spec.form = CovarianceForm::kDual;
          spec.scale = 1.0 / real(shape.width);
          spec.checks.every = 0;
          const std::shared_ptr<Posterior> posterior = make_posterior(spec);
          for (std::int64_t done = 0; done < pairs;) {
            const std::int64_t count = std::min<std::int64_t>(500, pairs - done);
            const auto seen = documents(shape, 2 * count, sizes, static_cast<std::uint32_t>(done + 7));
            std::vector<PreferencePair> observed;
            for (std::int32_t pair = 0; pair < count; ++pair) observed.push_back({2 * pair, 2 * pair + 1});
            posterior->observe(seen->context, seen->rows(), observed);
            done += count;
          }
          return [data = documents(shape, sizes.docs, sizes), posterior,
                  width_sq = std::vector<double>(size(sizes.docs * sizes.docs))]() mutable {
            posterior->width_sq(data->context, data->rows(), width_sq);
          };
        });
  }

  void add_training() {
    const OpSizes sizes = sizes_;
    const NetworkShape shape = shape_;
    const std::int64_t docs = 2 * sizes.pairs;
    // Two passes of a multiplication and an addition a parameter.
    add("pair_training/pair_gradient", {{"n", sizes.pairs}, {"m", sizes.width}, {"d", sizes.features}},
        4.0 * real(docs * shape.parameters()), kFloat * real(docs * shape.inputs), CeilingKind::kGemmFloat,
        [sizes, shape, docs] {
          std::vector<PairTerm> terms;
          for (std::int32_t doc = 0; doc < docs; doc += 2) terms.push_back({doc, doc + 1, 1.0, 1.0});
          return [data = documents(shape, docs, sizes), terms,
                  gradient = std::vector<double>(size(shape.parameters()))]() mutable {
            pair_gradient(data->context, data->shape, data->theta, data->matrix(), terms, {}, gradient);
          };
        });
  }

  void add_steps() {
    const std::int64_t p = shape_.parameters();
    const auto gradient = uniform<double>(p, 6);
    // Gradient, position and velocity in double, θ in float.
    add("optimizer_step/gradient_descent_step", {{"p", p}}, 2.0 * real(p),
        real(p) * (kDouble + 2.0 * kFloat), CeilingKind::kCopy, [p, gradient] {
          return [gradient, theta = std::vector<float>(size(p))]() mutable {
            gradient_descent_step(1e-9, gradient, theta);
          };
        });
    add("optimizer_step/nesterov_step", {{"p", p}}, 5.0 * real(p), real(p) * (5.0 * kDouble + kFloat),
        CeilingKind::kCopy, [p, gradient] {
          return [gradient, velocity = std::vector<double>(size(p)),
                  position = std::vector<double>(size(p)), theta = std::vector<float>(size(p))]() mutable {
            nesterov_step(1e-9, gradient, velocity, position, theta);
          };
        });
    add("optimizer_step/adam_step", {{"p", p}}, 12.0 * real(p), real(p) * (7.0 * kDouble + kFloat),
        CeilingKind::kCopy, [p, gradient] {
          return [gradient, first = std::vector<double>(size(p)), second = std::vector<double>(size(p)),
                  position = std::vector<double>(size(p)), theta = std::vector<float>(size(p)),
                  number = std::int64_t{0}]() mutable {
            adam_step(++number, 1e-9, 0.0, gradient, {first, second}, position, theta);
          };
        });
  }

  void add_linear() {
    const OpSizes sizes = sizes_;
    const std::int64_t stride =
        (sizes.features + FoldedPairs::kPadding - 1) / FoldedPairs::kPadding * FoldedPairs::kPadding;
    add("folded_pair_gradient/folded_pair_gradient", {{"n", sizes.pairs}, {"d", sizes.features}},
        4.0 * real(sizes.pairs * sizes.features), kDouble * real(sizes.pairs * stride),
        CeilingKind::kGemmDouble, [sizes, stride] {
          auto context = std::make_shared<ExecutionContext>(Device{}, sizes.threads);
          return [context, stride, n = sizes.pairs, rows = uniform<double>(sizes.pairs * stride, 8),
                  wins = std::vector<double>(size(sizes.pairs), 1.0),
                  count = std::vector<double>(size(sizes.pairs), 1.0),
                  theta = std::vector<double>(size(stride)),
                  gradient = std::vector<double>(size(stride))]() mutable {
            folded_pair_gradient(*context, {rows.data(), n, stride, wins.data(), count.data()}, theta,
                                 gradient, {});
          };
        });
  }

  OpSizes sizes_;
  NetworkShape shape_;
  NetworkShape narrow_;
  std::vector<BenchCase> cases_;
};

}  // namespace

std::vector<BenchCase> op_cases(const OpSizes& sizes) {
  return OpCases(sizes).all();
}

}  // namespace olrank
