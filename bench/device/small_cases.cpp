#include <cmath>

#include "bench/device/width_query.h"
#include "cuda/ops/diagonal_covariance.h"
#include "cuda/ops/history_update.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/largest_curvature.h"
#include "cuda/ops/mini_batch.h"
#include "cuda/ops/optimizer_step.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/ops/replay.h"
#include "cuda/ops/theory_alpha.h"

// The small operations of a round, whose time is mostly launch overhead.
namespace olrank {
namespace {

constexpr std::int64_t kLesson = 2 * kRoundPairs;  // documents per round
constexpr double kWordBytes = 4.0;

class SmallCases {
 public:
  explicit SmallCases(const DeviceSizes& sizes)
      : sizes_(sizes), shape_(shape_of(sizes)), p_(real(shape_.parameters())) {}

  std::vector<DeviceCase> all() {
    add_lesson();
    add_mini_batch();
    add_score_check();
    add_resets();
    add_alpha();
    add_corner();
    add_step();
    add_replay();
    add_curvature_start();
    for (const std::int64_t members : sizes_.members) {
      add_starts(members);
      add_deep(members);
    }
    add_evaluation(device::Multiplier::kOwn, "evaluation/forward_by_kernels");
    add_evaluation(device::Multiplier::kLibrary, "evaluation/forward_by_library");
    return std::move(cases_);
  }

 private:
  using Parameters = std::vector<std::pair<std::string, std::int64_t>>;

  void add_lesson() {
    cases_.push_back(
        {.name = "history_update/gather_docs",
         .parameters = {{"docs", kLesson}, {"d", sizes_.features}},
         .bytes = 2.0 * kFloatBytes * real(kLesson * sizes_.features),
         .prepare = [sizes = sizes_](Stream) {
           const at::Tensor from = at::rand({sizes.docs, sizes.features}, options_of(sizes, at::kFloat));
           const at::Tensor numbers = at::randint(sizes.docs, {kLesson}, options_of(sizes, at::kLong));
           const at::Tensor to = empty_tensor(sizes, at::kFloat, {kLesson, sizes.features});
           return compared(
               [=](Stream on) {
                 device::gather_docs(on, data<float>(from), sizes.features, data<std::int64_t>(numbers),
                                     kLesson, data<float>(to));
               },
               [=] { return from.index_select(0, numbers); },
               [=](const at::Tensor& other) { return disagreement_of(to, other); }, 0.0);
         }});
    cases_.push_back({.name = "history_update/write_terms",
                      .parameters = {{"k", kRoundPairs}},
                      .bytes = real(kRoundPairs) * real(sizeof(DeviceUpdate::Term) + sizeof(PairTerm)),
                      .prepare = [sizes = sizes_](Stream) {
                        std::vector<DeviceUpdate::Term> changed(kRoundPairs);
                        for (std::int32_t i = 0; i < kRoundPairs; ++i) changed[i].index = 2 * i;
                        const at::Tensor there = uploaded(sizes, changed);
                        const at::Tensor terms = uploaded(sizes, std::vector<PairTerm>(2 * kRoundPairs));
                        return alone([=](Stream on) {
                          device::write_terms(on, data<DeviceUpdate::Term>(there), kRoundPairs,
                                              data<PairTerm>(terms));
                        });
                      }});
  }

  void add_mini_batch() {
    constexpr std::int64_t kBatch = 1024;
    const double rows = 2.0 * real(kBatch);
    cases_.push_back(
        {.name = "mini_batch/gather_batch",
         .parameters = {{"k", kBatch}, {"d", sizes_.features}},
         .bytes = 2.0 * kFloatBytes * rows * real(sizes_.features) +
                  real(kBatch) * real(2 * sizeof(PairTerm) + sizeof(PairObservation)),
         .prepare = [sizes = sizes_](Stream) {
           const at::Tensor from = at::rand({2 * kBatch, sizes.features}, options_of(sizes, at::kFloat));
           std::vector<PairTerm> terms;
           std::vector<PairObservation> seen;
           for (std::int32_t i = 0; i < kBatch; ++i) {
             terms.push_back({2 * i, 2 * i + 1, 1.0, 1.0});
             seen.push_back({i, -1, -1, 1});
           }
           const at::Tensor terms_there = uploaded(sizes, terms);
           const at::Tensor seen_there = uploaded(sizes, seen);
           const at::Tensor order = at::randperm(kBatch, options_of(sizes, at::kInt));
           device::BatchCursor at_order;
           at_order.order = data<std::int32_t>(order);
           const at::Tensor cursor = uploaded(sizes, std::vector{at_order});
           const at::Tensor to = empty_tensor(sizes, at::kFloat, {kBatch, 2 * sizes.features});
           const at::Tensor batch_terms = uploaded(sizes, terms);
           return compared(
               [=](Stream on) {
                 device::gather_batch(on,
                                      {data<float>(from), sizes.features, data<PairTerm>(terms_there),
                                       data<PairObservation>(seen_there)},
                                      data<device::BatchCursor>(cursor), kBatch, data<float>(to),
                                      data<PairTerm>(batch_terms));
               },
               [=] {
                 return from.view({kBatch, -1}).index_select(0, order);
               },
               [=](const at::Tensor& other) { return disagreement_of(to, other); }, 0.0);
         }});
    cases_.push_back({.name = "mini_batch/fill_batch_incidence",
                      .parameters = {{"k", kBatch}},
                      .bytes = 2.0 * kWordBytes * rows,
                      .prepare = [sizes = sizes_](Stream) {
                        const at::Tensor offsets = empty_tensor(sizes, at::kInt, {2 * kBatch + 1});
                        const at::Tensor ends = empty_tensor(sizes, at::kInt, {2 * kBatch});
                        return alone([=](Stream on) {
                          device::fill_batch_incidence(
                              on, kBatch, {data<std::int32_t>(offsets), data<std::int32_t>(ends)});
                        });
                      }});
    constexpr std::int64_t kMembers = 10;
    cases_.push_back({.name = "mini_batch/begin_batches",
                      .parameters = {{"N", kMembers}},
                      .bytes = real(kMembers) * real(sizeof(device::BatchCursor)),
                      .prepare = [sizes = sizes_](Stream) {
                        const at::Tensor order = empty_tensor(sizes, at::kInt, {kMembers * kBatch});
                        const at::Tensor cursors =
                            uploaded(sizes, std::vector<device::BatchCursor>(kMembers));
                        return alone([=](Stream on) {
                          device::begin_batches(on, kMembers, data<std::int32_t>(order), kBatch, {},
                                                data<device::BatchCursor>(cursors));
                        });
                      }});
    // The cursor is reset each time, as it would otherwise run past its tables.
    cases_.push_back({.name = "mini_batch/finish_batch",
                      .parameters = {},
                      .bytes = 2.0 * real(sizeof(device::BatchCursor)),
                      .prepare = [sizes = sizes_](Stream) {
                        const at::Tensor loss = at::ones({1}, options_of(sizes, at::kDouble));
                        const at::Tensor found = at::zeros({2}, options_of(sizes, at::kDouble));
                        const at::Tensor order = empty_tensor(sizes, at::kInt, {kBatch});
                        const at::Tensor cursor = uploaded(sizes, std::vector<device::BatchCursor>(1));
                        const at::Tensor rates = uploaded(sizes, std::vector<StepRates>(2));
                        return alone([=](Stream on) {
                          device::begin_batches(on, 1, data<std::int32_t>(order), kBatch, {},
                                                data<device::BatchCursor>(cursor));
                          device::finish_batch(on, kBatch, data<double>(loss), data<StepRates>(rates),
                                               data<device::BatchCursor>(cursor),
                                               {data<double>(found), data<double>(found) + 1});
                        });
                      }});
  }

  void add_score_check() {
    cases_.push_back({.name = "mini_batch/note_bad_scores",
                      .parameters = {{"docs", sizes_.docs}},
                      .bytes = kFloatBytes * real(sizes_.docs),
                      .prepare = [sizes = sizes_](Stream) {
                        const at::Tensor scores = at::rand({sizes.docs}, options_of(sizes, at::kFloat));
                        const at::Tensor found = at::zeros({2}, options_of(sizes, at::kDouble));
                        const at::Tensor cursor = uploaded(sizes, std::vector<device::BatchCursor>(1));
                        return alone([=](Stream on) {
                          device::note_bad_scores(on, data<device::BatchCursor>(cursor), sizes.docs,
                                                  data<float>(scores),
                                                  {data<double>(found), data<double>(found) + 1});
                        });
                      }});
  }

  void add_resets() {
    const Parameters parameters{{"p", shape_.parameters()}};
    cases_.push_back({.name = "diagonal_covariance/reset_diagonal",
                      .parameters = parameters,
                      .bytes = 2.0 * kDoubleBytes * p_,
                      .prepare = [sizes = sizes_, shape = shape_](Stream) {
                        const at::Tensor diagonal = empty_tensor(sizes, at::kDouble, {shape.parameters()});
                        const at::Tensor root = at::empty_like(diagonal);
                        return compared(
                            [=](Stream on) {
                              device::reset_diagonal(on, shape, kLambda, 1.0,
                                                     {data<double>(diagonal), data<double>(root)});
                            },
                            [=] { return at::full_like(diagonal, kLambda); },
                            [=](const at::Tensor& other) { return disagreement_of(diagonal, other); }, 0.0);
                      }});
    cases_.push_back(
        {.name = "inverse_covariance/reset_inverse_covariance",
         .parameters = parameters,
         .bytes = kDoubleBytes * p_ * p_,
         .prepare = [sizes = sizes_, p = shape_.parameters()](Stream) {
           const at::Tensor inverse = empty_tensor(sizes, at::kDouble, {p, p});
           return compared(
               [=](Stream on) { device::reset_inverse_covariance(on, p, kLambda, data<double>(inverse)); },
               [=] { return at::eye(p, inverse.options()) / kLambda; },
               [=](const at::Tensor& other) { return disagreement_of(inverse, other); }, 1e-15);
         }});
    cases_.push_back({.name = "inverse_covariance/fill_parameter_table",
                      .parameters = parameters,
                      .bytes = 2.0 * kWordBytes * p_,
                      .prepare = [sizes = sizes_, shape = shape_](Stream) {
                        const at::Tensor delta = empty_tensor(sizes, at::kInt, {shape.parameters()});
                        const at::Tensor input = at::empty_like(delta);
                        return alone([=](Stream on) {
                          device::fill_parameter_table(
                              on, shape, {data<std::int32_t>(delta), data<std::int32_t>(input)});
                        });
                      }});
  }

  void add_alpha() {
    cases_.push_back({.name = "theory_alpha/set_theory_alpha",
                      .parameters = {},
                      .bytes = 2.0 * kDoubleBytes,
                      .prepare = [sizes = sizes_](Stream) {
                        const at::Tensor log_det = at::ones({1}, options_of(sizes, at::kDouble));
                        const at::Tensor rule = uploaded(sizes, std::vector<CertaintyRule>(1));
                        return alone([=](Stream on) {
                          device::set_theory_alpha(on, TheoryAlpha{}, data<double>(log_det),
                                                   data<CertaintyRule>(rule));
                        });
                      }});
  }

  void add_corner() {
    const double square = real(kRoundPairs * kRoundPairs);
    cases_.push_back(
        {.name = "pair_corner/factor_pair_corner",
         .parameters = {{"k", kRoundPairs}, {"V", sizes_.docs}},
         .operations = square * real(kRoundPairs),  // a factor and its inverse, a third of k³ products each
         .bytes = 2.0 * kDoubleBytes * square,
         .prepare = [sizes = sizes_](Stream) {
           // With M = I, disjoint pairs have I + ΔMΔᵀ = 3I.
           const at::Tensor m = at::eye(sizes.docs, options_of(sizes, at::kDouble));
           std::vector<PreferencePair> made(kRoundPairs);
           for (std::int32_t i = 0; i < kRoundPairs; ++i) made[i] = {2 * i, 2 * i + 1};
           const at::Tensor pairs = uploaded(sizes, made);
           const at::Tensor corner = empty_tensor(sizes, at::kDouble, {kRoundPairs, kRoundPairs});
           const at::Tensor inverse = at::empty_like(corner);
           const at::Tensor status = uploaded(sizes, std::vector<device::CovarianceStatus>(1));
           return compared(
               [=](Stream on) {
                 device::factor_pair_corner(on, sizes.docs, data<double>(m), data<PreferencePair>(pairs),
                                            kRoundPairs, data<double>(corner), data<double>(inverse),
                                            data<device::CovarianceStatus>(status));
               },
               [=] { return at::eye(kRoundPairs, m.options()) / std::sqrt(3.0); },
               [=](const at::Tensor& other) { return disagreement_of(at::tril(inverse), other); }, 1e-14);
         }});
  }

  void add_step() {
    cases_.push_back({.name = "largest_curvature/step_from_curvature",
                      .parameters = {},
                      .bytes = 2.0 * kDoubleBytes,
                      .prepare = [sizes = sizes_](Stream) {
                        const at::Tensor state = uploaded(sizes, std::vector<device::CurvatureState>(1));
                        const at::Tensor step = empty_tensor(sizes, at::kDouble, {1});
                        return alone([=](Stream on) {
                          device::step_from_curvature(on, data<device::CurvatureState>(state), 1.0, 1.0,
                                                      2.0, data<double>(step));
                        });
                      }});
  }

  void add_replay() {
    constexpr std::int64_t kTerms = 256;
    cases_.push_back({.name = "replay/split_sample",
                      .parameters = {{"terms", kTerms}},
                      .bytes = real(kTerms) * (real(sizeof(SampledTerm)) + 4.0 * kDoubleBytes),
                      .prepare = [sizes = sizes_](Stream) {
                        const at::Tensor sources = uploaded(sizes, std::vector<SampledTerm>(kTerms));
                        const at::Tensor parts = empty_tensor(sizes, at::kDouble, {4, kTerms});
                        return alone([=](Stream on) {
                          auto* to = data<double>(parts);
                          device::split_sample(on, data<SampledTerm>(sources), kTerms, 1, nullptr, nullptr,
                                               0.0, {to, to + kTerms, to + 2 * kTerms, to + 3 * kTerms});
                        });
                      }});
    const Parameters parameters{{"p", shape_.parameters()}};
    const auto of_gradients = [&](const char* name, auto work) {
      cases_.push_back({.name = name,
                        .parameters = parameters,
                        .bytes = 3.0 * kDoubleBytes * p_,
                        .prepare = [sizes = sizes_, p = shape_.parameters(), work](Stream) {
                          const at::Tensor gradient = at::rand({p}, options_of(sizes, at::kDouble));
                          const at::Tensor whole = at::rand({p}, options_of(sizes, at::kDouble));
                          return alone([=](Stream on) { work(on, p, gradient, whole); });
                        }});
    };
    of_gradients("replay/add_finite_gradient",
                 [](Stream on, std::int64_t p, const at::Tensor& gradient, const at::Tensor& whole) {
                   device::add_finite_gradient(on, 1, p, data<double>(gradient), data<double>(whole));
                 });
    of_gradients("replay/subtract_from_whole",
                 [](Stream on, std::int64_t p, const at::Tensor& gradient, const at::Tensor& whole) {
                   device::subtract_from_whole(on, 1, p, data<double>(whole), data<double>(gradient));
                 });
  }

  void add_curvature_start() {
    cases_.push_back({.name = "largest_curvature/begin_curvature",
                      .parameters = {{"p", shape_.parameters()}},
                      .operations = 2.0 * p_,
                      .bytes = kDoubleBytes * p_,
                      .prepare = [sizes = sizes_, shape = shape_](Stream) {
                        const at::Tensor vector =
                            at::randn({shape.parameters()}, options_of(sizes, at::kDouble));
                        const at::Tensor scratch =
                            empty_tensor(sizes, at::kDouble, {device::curvature_workspace(shape, 1)});
                        const at::Tensor state = uploaded(sizes, std::vector<device::CurvatureState>(1));
                        device::CurvatureTask task;
                        task.shape = shape;
                        task.rows.docs = 1;
                        task.fresh = data<double>(vector);
                        return alone([=](Stream on) {
                          device::begin_curvature(on, task, data<double>(vector), data<double>(scratch),
                                                  data<device::CurvatureState>(state));
                        });
                      }});
  }

  /// The start of a training, and a step.
  void add_starts(std::int64_t members) {
    const std::int64_t p = shape_.parameters();
    const double numbers = real(members) * p_;
    const Parameters parameters{{"N", members}, {"p", p}};
    cases_.push_back(
        {.name = "optimizer_step/begin_training",
         .parameters = parameters,
         .bytes = numbers * (kFloatBytes + 3.0 * kDoubleBytes),
         .prepare = [sizes = sizes_, members, p](Stream) {
           const at::Tensor theta = at::randn({members, p}, options_of(sizes, at::kFloat));
           const at::Tensor state = empty_tensor(sizes, at::kDouble, {3, members, p});
           return compared(
               [=](Stream on) {
                 double* first = data<double>(state);
                 device::begin_training(on, members * p, data<float>(theta),
                                        {first, first + members * p, first + 2 * members * p});
               },
               [=] { return theta.to(at::kDouble); },
               [=](const at::Tensor& other) { return disagreement_of(state.select(0, 0), other); }, 0.0);
         }});
    cases_.push_back({.name = "optimizer_step/gradient_descent_step",
                      .parameters = parameters,
                      .operations = 2.0 * numbers,
                      .bytes = numbers * (2.0 * kFloatBytes + kDoubleBytes),
                      .prepare = [sizes = sizes_, members, p](Stream) {
                        const at::Tensor theta = at::randn({members, p}, options_of(sizes, at::kFloat));
                        const at::Tensor gradient = at::randn({members, p}, options_of(sizes, at::kDouble));
                        const at::Tensor step = at::full({members}, 1e-9, gradient.options());
                        return alone([=](Stream on) {
                          device::gradient_descent_step(on, members, p, data<double>(gradient),
                                                        data<double>(step), data<float>(theta));
                        });
                      }});
  }

  /// Three layers: the forward pass, and the backward pass between hidden layers.
  void add_deep(std::int64_t members) {
    DeviceSizes deep = sizes_;
    deep.depth = 3;
    const NetworkShape shape = shape_of(deep);
    const NetworkLayer middle = shape.layer(1);
    const Parameters parameters{
        {"N", members}, {"V", deep.docs}, {"m", deep.width}, {"d", deep.features}, {"L", 3}};
    const double docs = real(members * deep.docs);
    cases_.push_back(
        {.name = "relu_layers/forward",
         .parameters = parameters,
         .operations = 2.0 * docs * real(shape.parameters()),
         .bytes = kFloatBytes * (real(deep.docs * deep.features) + real(members * shape.parameters()) +
                                 docs * real(shape.factors())),
         .arithmetic = Arithmetic::kFloat,
         .prepare = [deep, members](Stream stream) {
           const auto made = make_docs(deep, stream, deep.docs, members);
           return alone([=](Stream on) {
             device::forward(made->products(on), made->stack(), data<float>(made->features), made->view(),
                             made->out());
           });
         }});
    cases_.push_back({.name = "relu_layers/backward_hidden",
                      .parameters = parameters,
                      .operations = 2.0 * docs * real(middle.rows * middle.columns),
                      .bytes = kFloatBytes * (real(members * middle.rows * middle.columns) +
                                              docs * real(middle.rows + 2 * middle.columns)),
                      .arithmetic = Arithmetic::kFloat,
                      .prepare = [deep, members](Stream stream) {
                        const auto made = make_docs(deep, stream, deep.docs, members);
                        return alone([=](Stream on) {
                          device::backward_hidden(made->products(on), made->stack(), made->view());
                        });
                      }});
  }

  /// Documents of an evaluation, both ways.
  void add_evaluation(device::Multiplier multiplier, const std::string& name) {
    const double docs = real(sizes_.scored_at_once);
    cases_.push_back(
        {.name = name,
         .parameters = {{"V", sizes_.scored_at_once}, {"m", sizes_.width}, {"d", sizes_.features}},
         .operations = 2.0 * docs * p_,
         .bytes = kFloatBytes * (docs * real(sizes_.features + sizes_.width + 1) + p_),
         .arithmetic = Arithmetic::kFloat,
         .prepare = [sizes = sizes_, multiplier](Stream stream) {
           const auto made = make_docs(sizes, stream, sizes.scored_at_once);
           const auto score = [=](Stream on, device::Multiplier by) {
             device::forward(made->products(on), made->stack(by), data<float>(made->features), made->view(),
                             {data<float>(made->scores), nullptr});
           };
           DeviceWork work = alone([=](Stream on) { score(on, multiplier); });
           work.disagreement = [=](Stream on) {
             score(on, device::Multiplier::kOwn);
             const at::Tensor expected = made->scores.clone();
             score(on, multiplier);
             return disagreement_of(made->scores, expected);
           };
           work.tolerance = 1e-5;  // sums in float32
           return work;
         }});
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  double p_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> small_cases(const DeviceSizes& sizes) {
  return SmallCases(sizes).all();
}

}  // namespace olrank
