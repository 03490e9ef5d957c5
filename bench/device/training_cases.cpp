#include <algorithm>
#include <cmath>

#include "bench/device/bench_tensors.h"
#include "bench/device/libtorch_forms.h"
#include "core/random/rng_stream.h"
#include "cuda/ops/gradient_products.h"
#include "cuda/ops/largest_curvature.h"
#include "cuda/ops/ndcg_weights.h"
#include "cuda/ops/optimizer_step.h"
#include "cuda/ops/pair_training.h"

// The operations of a round's training, on a history of n pairs of 2n distinct documents: the worst case,
// as repeated documents and pairs are folded.
namespace olrank {
namespace {

constexpr std::int64_t kIndexBytes = 4;

/// Pairs (2s, 2s + 1), every other one won by its second document.
std::vector<PairTerm> made_terms(std::int64_t n) {
  std::vector<PairTerm> terms;
  terms.reserve(n);
  for (std::int32_t s = 0; s < n; ++s) terms.push_back({2 * s, 2 * s + 1, 1.0, s % 2 == 0 ? 1.0 : 0.0});
  return terms;
}

struct Training {
  DeviceSizes sizes;
  std::int64_t n;
  std::shared_ptr<MadeDocs> docs;
  at::Tensor terms;
  at::Tensor offsets;
  at::Tensor ends;
  at::Tensor incidence_work;
  at::Tensor centre;
  at::Tensor step;
  at::Tensor rows;
  at::Tensor partial;
  at::Tensor loss_sums;
  at::Tensor losses;
  at::Tensor gradient;

  Training(const DeviceSizes& of, Stream stream, std::int64_t pairs, std::int64_t members)
      : sizes(of),
        n(pairs),
        docs(make_docs(of, stream, 2 * pairs, members)),
        terms(uploaded(of, made_terms(n))),
        offsets(empty_tensor(of, at::kInt, {docs->docs + 1})),
        ends(empty_tensor(of, at::kInt, {2 * n})),
        incidence_work(empty_tensor(of, at::kInt, {device::incidence_workspace(docs->docs, n)})),
        centre(docs->theta * 0.5),
        // So small that θ does not change over any number of steps.
        step(at::full({members}, 1e-15, options_of(of, at::kDouble))) {
    const device::TrainingSizes needed = device::training_sizes(docs->shape, members, docs->docs, n);
    rows = empty_tensor(of, at::kFloat, {needed.rows});
    partial = empty_tensor(of, at::kFloat, {needed.partial});
    loss_sums = empty_tensor(of, at::kDouble, {needed.losses});
    losses = empty_tensor(of, at::kDouble, {members});
    gradient = empty_tensor(of, at::kDouble, {members, docs->shape.parameters()});
    find_terms(stream);
  }

  device::PairIncidence incidence() const {
    return {data<std::int32_t>(offsets), data<std::int32_t>(ends)};
  }
  void find_terms(Stream on) const {
    device::find_incidence(on, data<PairTerm>(terms), n, docs->docs, data<std::int32_t>(incidence_work),
                           incidence());
  }
  device::PairHistoryView history() const {
    return {data<float>(docs->features), docs->docs, data<PairTerm>(terms), n, incidence()};
  }
  device::StackedObjective objective() const { return {1.0, prior_weight(), data<float>(centre)}; }
  double prior_weight() const { return 0.5 * real(sizes.width) * 10.0; }
  device::TrainingWorkspace work() const {
    return {data<float>(rows), data<float>(docs->scores), data<float>(partial), data<double>(loss_sums)};
  }

  void forward(Stream on, const device::NetworkStack& stack) const {
    device::forward_history(docs->products(on), stack, history(), work());
  }
  void gradients(Stream on, const device::NetworkStack& stack, const device::GradientUse& use) const {
    device::pair_gradients(docs->products(on), stack, history(), objective(), work(), use);
  }
  device::GradientUse moves() const { return {nullptr, data<float>(docs->theta), data<double>(step)}; }
  device::GradientUse asks() const { return {data<double>(gradient), nullptr, nullptr}; }

  libtorch::Terms terms_in_libtorch() const {
    const at::Tensor even = at::arange(0, 2 * n, 2, options_of(sizes, at::kLong));
    return {even, even + 1, at::ones({n}, options_of(sizes, at::kFloat))};
  }
  libtorch::TrainingStep in_libtorch() const {
    const libtorch::Terms terms_there = terms_in_libtorch();
    return {docs->shape,
            {docs->features, terms_there.first, terms_there.second, terms_there.weights,
             (1 - at::arange(n, options_of(sizes, at::kLong)).remainder(2)).to(at::kFloat), centre,
             prior_weight()}};
  }
};

class TrainingCases {
 public:
  explicit TrainingCases(const DeviceSizes& sizes)
      : sizes_(sizes),
        shape_(shape_of(sizes)),
        p_(real(shape_.parameters())),
        largest_(*std::max_element(sizes.pairs.begin(), sizes.pairs.end())) {}

  std::vector<DeviceCase> all() {
    for (const std::int64_t n : sizes_.pairs) {
      add_incidence(n);
      for (const std::int64_t members : sizes_.members) add_steps(n, members);
      for (const std::int64_t width : {sizes_.width, sizes_.wide}) {
        add_step_by(n, width, device::Multiplier::kOwn, "training/step_by_kernels");
        add_step_by(n, width, device::Multiplier::kLibrary, "training/step_by_library");
      }
      add_curvature(n);
      add_lambdas(n);
    }
    for (const std::int64_t members : sizes_.members) add_optimizers(members);
    return std::move(cases_);
  }

 private:
  using Parameters = std::vector<std::pair<std::string, std::int64_t>>;

  Parameters of_pairs(std::int64_t n) const {
    return {{"n", n}, {"m", sizes_.width}, {"d", sizes_.features}};
  }
  Parameters of_members(std::int64_t n, std::int64_t members) const {
    Parameters parameters = of_pairs(n);
    parameters.insert(parameters.begin() + 1, {"N", members});
    return parameters;
  }
  double share_at(std::int64_t n, std::int64_t members = 1) const {
    if (n != largest_) return 0.0;
    return members > 1 ? kWantedShareOfMembers : kWantedShare;
  }

  void add_incidence(std::int64_t n) {
    cases_.push_back(
        {.name = "pair_incidence/find_incidence",
         .parameters = {{"n", n}},
         .bytes = real(n) * (sizeof(PairTerm) + 2.0 * kIndexBytes) + 2.0 * kIndexBytes * real(n),
         .prepare = [sizes = sizes_, n](Stream stream) {
           const auto training = std::make_shared<Training>(sizes, stream, n, 1);
           return alone([=](Stream on) { training->find_terms(on); });
         }});
  }

  void add_steps(std::int64_t n, std::int64_t members) {
    const double passes =
        2.0 * real(members * 2 * n) * p_;  // a multiplication and an addition per parameter
    const double features = kFloatBytes * real(2 * n * sizes_.features);
    const double hidden = kFloatBytes * real(members * 2 * n * sizes_.width);
    const double theta = kFloatBytes * real(members) * p_;
    add_labels(n, members);
    cases_.push_back({.name = "pair_training/forward_history",
                      .parameters = of_members(n, members),
                      .operations = passes,
                      .bytes = features + hidden + theta,
                      .arithmetic = Arithmetic::kFloat,
                      .least_share = share_at(n, members),
                      .prepare = [sizes = sizes_, n, members](Stream stream) {
                        const auto training = std::make_shared<Training>(sizes, stream, n, members);
                        return alone([=](Stream on) { training->forward(on, training->docs->stack()); });
                      }});
    cases_.push_back({.name = "pair_training/pair_losses",
                      .parameters = of_members(n, members),
                      .operations = 10.0 * real(members * n) + 3.0 * real(members) * p_,
                      .bytes = real(members * n) * (sizeof(PairTerm) + 2.0 * kFloatBytes) + 2.0 * theta,
                      .prepare = [sizes = sizes_, n, members](Stream stream) {
                        const auto training = std::make_shared<Training>(sizes, stream, n, members);
                        training->forward(stream, training->docs->stack());
                        return alone([=](Stream on) {
                          device::pair_losses(on, training->docs->stack(), training->history(),
                                              training->objective(), training->work(),
                                              data<double>(training->losses));
                        });
                      }});
    cases_.push_back({.name = "pair_training/pair_gradients",
                      .parameters = of_members(n, members),
                      .operations = passes,
                      .bytes = features + hidden + 3.0 * theta,
                      .arithmetic = Arithmetic::kFloat,
                      .least_share = share_at(n, members),
                      .prepare = [sizes = sizes_, n, members](Stream stream) {
                        const auto training = std::make_shared<Training>(sizes, stream, n, members);
                        training->forward(stream, training->docs->stack());
                        return alone([=](Stream on) {
                          training->gradients(on, training->docs->stack(), training->moves());
                        });
                      }});
    if (members == 1) {
      cases_.push_back({.name = "pair_training/score_gradient",
                        .parameters = of_members(n, members),
                        .operations = passes,
                        .bytes = features + hidden + 3.0 * theta,
                        .arithmetic = Arithmetic::kFloat,
                        .prepare = [sizes = sizes_, n](Stream stream) {
                          const auto training = std::make_shared<Training>(sizes, stream, n, 1);
                          training->forward(stream, training->docs->stack());
                          const at::Tensor slopes =
                              at::ones({training->history().docs}, options_of(sizes, at::kDouble));
                          return alone([=](Stream on) {
                            device::score_gradient(training->docs->products(on), training->docs->stack(),
                                                   training->history(), data<double>(slopes), 1.0,
                                                   training->work(), data<double>(training->gradient));
                          });
                        }});
    }
    cases_.push_back({.name = "training/step",
                      .parameters = of_members(n, members),
                      .operations = 2.0 * passes,
                      .bytes = 2.0 * (features + hidden) + 4.0 * theta,
                      .arithmetic = Arithmetic::kFloat,
                      .least_share = share_at(n, members),
                      .least_ratio = kWantedTrainingRatio,
                      .prepare = [sizes = sizes_, n, members](Stream stream) {
                        const auto training = std::make_shared<Training>(sizes, stream, n, members);
                        const libtorch::TrainingStep other = training->in_libtorch();
                        const at::Tensor theta = training->docs->theta.clone();
                        const auto own = [=](Stream on) {
                          training->forward(on, training->docs->stack());
                          training->gradients(on, training->docs->stack(), training->moves());
                        };
                        DeviceWork work = alone(own);
                        work.libtorch = [=] { other.take(theta, 1e-15); };
                        work.disagreement = [=](Stream on) {
                          training->forward(on, training->docs->stack());
                          training->gradients(on, training->docs->stack(), training->asks());
                          return disagreement_of(training->gradient, other.gradient(theta));
                        };
                        work.tolerance = 1e-4;  // sums in float32
                        return work;
                      }});
  }

  /// A step in float32 both ways, whichever is chosen at this width.
  void add_step_by(std::int64_t n, std::int64_t width, device::Multiplier multiplier,
                   const std::string& name) {
    DeviceSizes sizes = sizes_;
    sizes.width = width;
    const double p = real(shape_of(sizes).parameters());
    cases_.push_back(
        {.name = name,
         .parameters = {{"n", n}, {"m", width}, {"d", sizes.features}},
         .operations = 8.0 * real(n) * p,
         .bytes = 2.0 * kFloatBytes * real(2 * n * (sizes.features + width)) + 4.0 * kFloatBytes * p,
         .arithmetic = Arithmetic::kFloat,
         .prepare = [sizes, n, multiplier](Stream stream) {
           const auto training = std::make_shared<Training>(sizes, stream, n, 1);
           const auto by = [=](device::Multiplier one) { return training->docs->stack(one); };
           DeviceWork work = alone([=](Stream on) {
             training->forward(on, by(multiplier));
             training->gradients(on, by(multiplier), training->moves());
           });
           work.disagreement = [=](Stream on) {
             training->forward(on, by(device::Multiplier::kOwn));
             training->gradients(on, by(device::Multiplier::kOwn), training->asks());
             const at::Tensor expected = training->gradient.clone();
             training->forward(on, by(multiplier));
             training->gradients(on, by(multiplier), training->asks());
             return disagreement_of(training->gradient, expected);
           };
           work.tolerance = 1e-4;  // sums in float32
           return work;
         }});
  }

  void add_labels(std::int64_t n, std::int64_t members) {
    cases_.push_back({.name = "pair_training/perturb_labels",
                      .parameters = {{"n", n}, {"N", members}},
                      .operations = 100.0 * real(n * members),  // ten rounds of Philox and a normal number
                      .bytes = real(n) * sizeof(PairTerm) + kDoubleBytes * real(n * members),
                      .prepare = [sizes = sizes_, n, members](Stream) {
                        std::vector<PhiloxKey> keys;
                        for (std::int64_t member = 0; member < members; ++member)
                          keys.push_back(make_key({.seed = static_cast<std::uint64_t>(member + 1),
                                                   .purpose = Purpose::kProbe}));
                        const at::Tensor terms = uploaded(sizes, made_terms(n));
                        const at::Tensor keys_there = uploaded(sizes, keys);
                        const at::Tensor round = uploaded(sizes, std::vector<std::uint32_t>{7});
                        const at::Tensor labels = empty_tensor(sizes, at::kDouble, {members, n});
                        return alone([=](Stream on) {
                          device::perturb_labels(on, data<PairTerm>(terms), n, members,
                                                 data<PhiloxKey>(keys_there), data<std::uint32_t>(round),
                                                 0.3, data<double>(labels));
                        });
                      }});
  }

  void add_curvature(std::int64_t n) {
    const double sums = 2.0 * real(2 * n) * p_;
    const double rows = kFloatBytes * real(2 * n * shape_.factors());
    add_gradient_products(n, sums, rows);
    add_gradient_sum(n, sums, rows);
    cases_.push_back(
        {.name = "largest_curvature/iterate_curvature",
         .parameters = of_pairs(n),
         .operations = 2.0 * sums,
         .bytes = 2.0 * rows + 6.0 * kDoubleBytes * p_,
         .least_share = share_at(n),
         .prepare = [sizes = sizes_, n](Stream stream) {
           const auto training = std::make_shared<Training>(sizes, stream, n, 1);
           const NetworkShape shape = training->docs->shape;
           const at::Tensor vector = at::randn({shape.parameters()}, options_of(sizes, at::kDouble));
           const at::Tensor scratch =
               empty_tensor(sizes, at::kDouble, {device::curvature_workspace(shape, training->docs->docs)});
           const at::Tensor state = uploaded(sizes, std::vector<device::CurvatureState>(1));
           // No quotient is negative, so the iteration never settles.
           const device::CurvatureTask task{
               shape, training->docs->view(), data<PairTerm>(training->terms), n, training->incidence(),
               -1.0,  data<double>(vector)};
           device::begin_curvature(stream, task, data<double>(vector), data<double>(scratch),
                                   data<device::CurvatureState>(state));
           const auto own = [=, held = training](Stream on) {
             device::iterate_curvature(on, task, data<double>(vector), data<double>(scratch),
                                       data<device::CurvatureState>(state));
           };
           const libtorch::Terms terms = training->terms_in_libtorch();
           const auto form = [=](const at::Tensor& v) {
             return libtorch::curvature_product(shape, training->docs->rows.select(0, 0), terms,
                                                (v / v.norm()).to(at::kFloat));
           };
           DeviceWork work = alone(own);
           work.libtorch = [=] { form(vector); };
           work.disagreement = [=](Stream on) {
             const at::Tensor before = vector.clone();
             own(on);
             return disagreement_of(vector, form(before).to(at::kDouble));
           };
           work.tolerance = 1e-4;  // sums over all documents in float32
           return work;
         }});
  }

  void add_gradient_products(std::int64_t n, double operations, double rows) {
    cases_.push_back({.name = "gradient_products/gradient_products",
                      .parameters = of_pairs(n),
                      .operations = operations,
                      .bytes = rows + kDoubleBytes * p_,
                      .least_share = share_at(n),
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto docs = make_docs(sizes, stream, 2 * n);
                        const at::Tensor v =
                            at::randn({docs->shape.parameters()}, options_of(sizes, at::kDouble));
                        const at::Tensor scratch =
                            empty_tensor(sizes, at::kDouble,
                                         {device::gradient_products_workspace(docs->shape, docs->docs)});
                        const at::Tensor products = empty_tensor(sizes, at::kDouble, {docs->docs});
                        return alone([=](Stream on) {
                          device::gradient_products(on, docs->shape, docs->view(), data<double>(v),
                                                    data<double>(scratch), data<double>(products));
                        });
                      }});
  }

  void add_gradient_sum(std::int64_t n, double operations, double rows) {
    cases_.push_back({.name = "gradient_products/gradient_sum",
                      .parameters = of_pairs(n),
                      .operations = operations,
                      .bytes = rows + kDoubleBytes * p_,
                      .least_share = share_at(n),
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto docs = make_docs(sizes, stream, 2 * n);
                        const at::Tensor weights = at::randn({docs->docs}, options_of(sizes, at::kDouble));
                        const at::Tensor scratch = empty_tensor(
                            sizes, at::kDouble, {device::gradient_sum_workspace(docs->shape, docs->docs)});
                        const at::Tensor sum = empty_tensor(sizes, at::kDouble, {docs->shape.parameters()});
                        return alone([=](Stream on) {
                          device::gradient_sum(on, docs->shape, docs->view(), data<double>(weights),
                                               data<double>(scratch), data<double>(sum));
                        });
                      }});
  }

  /// Impressions of four examined documents with two pairs each.
  void add_lambdas(std::int64_t n) {
    const double observations = real(n) * sizeof(PairObservation);
    cases_.push_back({.name = "ndcg_weights/group_observations",
                      .parameters = {{"n", n}},
                      .bytes = observations + 2.0 * kIndexBytes * real(n),
                      .prepare = [sizes = sizes_, n](Stream stream) {
                        const auto lists = std::make_shared<Impressions>(sizes, stream, n);
                        return alone([=](Stream on) { lists->group(on); });
                      }});
    cases_.push_back(
        {.name = "ndcg_weights/ndcg_weights",
         .parameters = {{"n", n}},
         .operations = 20.0 * real(n),
         .bytes = observations + 4.0 * kDoubleBytes * real(n) + 5.0 * kFloatBytes * real(2 * n),
         .prepare = [sizes = sizes_, n](Stream stream) {
           const auto lists = std::make_shared<Impressions>(sizes, stream, n);
           return alone([=](Stream on) { lists->weigh(on); });
         }});
  }

  struct Impressions {
    static constexpr std::int32_t kListed = 4;

    std::int64_t n;
    at::Tensor observations, work, offsets, items;
    at::Tensor first_doc, first_pair, rows, clicks, numbers, discounts;
    at::Tensor scores, changes, weights, labels;

    Impressions(const DeviceSizes& of, Stream stream, std::int64_t pairs) : n(pairs / 2 * 2) {
      std::vector<PairObservation> seen;
      std::vector<std::int32_t> docs_before{0};
      std::vector<std::int32_t> pairs_before{0};
      std::vector<std::int32_t> listed;
      std::vector<std::uint8_t> clicked;
      std::vector<std::int64_t> doc_numbers;
      for (std::int32_t s = 0; s < n; ++s) {
        const std::int32_t place = 2 * (s % 2);
        seen.push_back({s, place, place + 1, 1});
      }
      for (std::int32_t doc = 0; doc < 2 * n; ++doc) {
        listed.push_back(doc);
        clicked.push_back(doc % 2 == 0 ? 1 : 0);
        doc_numbers.push_back(doc);
        if (doc % kListed != kListed - 1) continue;
        docs_before.push_back(doc + 1);
        pairs_before.push_back((doc + 1) / 2);
      }
      observations = uploaded(of, seen);
      first_doc = uploaded(of, docs_before);
      first_pair = uploaded(of, pairs_before);
      rows = uploaded(of, listed);
      clicks = uploaded(of, clicked);
      numbers = uploaded(of, doc_numbers);
      discounts = uploaded(of, std::vector<double>{1.0, 0.63, 0.5, 0.43});
      scores = at::randn({2 * n}, options_of(of, at::kFloat));
      work = empty_tensor(of, at::kInt, {2 * n});
      offsets = empty_tensor(of, at::kInt, {n + 1});
      items = empty_tensor(of, at::kInt, {n});
      changes = empty_tensor(of, at::kDouble, {n});
      weights = empty_tensor(of, at::kDouble, {n});
      labels = empty_tensor(of, at::kDouble, {n});
      group(stream);
    }

    void group(Stream on) const {
      device::group_observations(on, data<PairObservation>(observations), n, n, data<std::int32_t>(work),
                                 data<std::int32_t>(offsets), data<std::int32_t>(items));
    }
    void weigh(Stream on) const {
      device::ndcg_weights(
          on,
          {n / 2, data<std::int32_t>(first_doc), data<std::int32_t>(first_pair), data<std::int32_t>(rows),
           data<std::uint8_t>(clicks), data<std::int64_t>(numbers), data<double>(discounts)},
          data<PairObservation>(observations), n, n, data<std::int32_t>(offsets), data<std::int32_t>(items),
          1, 2 * n, data<float>(scores), data<double>(changes), data<double>(weights),
          data<double>(labels));
    }
  };

  struct Optimizer {
    at::Tensor theta, gradient, step, position, first, second;

    Optimizer(const DeviceSizes& of, std::int64_t members, std::int64_t p)
        : theta(at::randn({members, p}, options_of(of, at::kFloat))),
          gradient(at::randn({members, p}, options_of(of, at::kDouble))),
          step(at::full({members}, 1e-9, options_of(of, at::kDouble))),
          position(theta.to(at::kDouble)),
          first(at::zeros_like(position)),
          second(at::zeros_like(position)) {}
    device::OptimizerState state() const {
      return {data<double>(position), data<double>(first), data<double>(second)};
    }
  };

  void add_optimizers(std::int64_t members) {
    const double numbers = real(members) * p_;
    const std::int64_t p = shape_.parameters();
    const Parameters parameters{{"N", members}, {"p", p}};
    cases_.push_back({.name = "optimizer_step/adam_step",
                      .parameters = parameters,
                      .operations = 12.0 * numbers,
                      .bytes = numbers * (7.0 * kDoubleBytes + kFloatBytes),
                      .prepare = [sizes = sizes_, members, p](Stream) {
                        const auto kept = std::make_shared<Optimizer>(sizes, members, p);
                        const at::Tensor rates = uploaded(sizes, std::vector{step_rates(3, 0.0)});
                        return alone([=](Stream on) {
                          device::adam_step(on, members, p, data<StepRates>(rates),
                                            data<double>(kept->gradient), data<double>(kept->step),
                                            kept->state(), data<float>(kept->theta));
                        });
                      }});
    cases_.push_back({.name = "optimizer_step/decayed_step",
                      .parameters = parameters,
                      .operations = 4.0 * numbers,
                      .bytes = numbers * (3.0 * kDoubleBytes + kFloatBytes),
                      .prepare = [sizes = sizes_, members, p](Stream) {
                        const auto kept = std::make_shared<Optimizer>(sizes, members, p);
                        const at::Tensor rates = uploaded(sizes, std::vector{step_rates(3, 1e-9)});
                        return alone([=](Stream on) {
                          device::decayed_step(on, members, p, data<StepRates>(rates),
                                               data<double>(kept->gradient), data<double>(kept->step),
                                               kept->state(), data<float>(kept->theta));
                        });
                      }});
    cases_.push_back({.name = "optimizer_step/nesterov_step",
                      .parameters = parameters,
                      .operations = 5.0 * numbers,
                      .bytes = numbers * (5.0 * kDoubleBytes + kFloatBytes),
                      .prepare = [sizes = sizes_, members, p](Stream) {
                        const auto kept = std::make_shared<Optimizer>(sizes, members, p);
                        return alone([=](Stream on) {
                          device::nesterov_step(on, members, p, data<double>(kept->gradient),
                                                data<double>(kept->step), kept->state(),
                                                data<float>(kept->theta));
                        });
                      }});
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  double p_;
  std::int64_t largest_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> training_cases(const DeviceSizes& sizes) {
  return TrainingCases(sizes).all();
}

}  // namespace olrank
