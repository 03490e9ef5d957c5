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
#include "cuda/ops/persistent_training.h"

// The operations of a round's training, on a history of n pairs of 2n distinct documents: the worst case,
// as repeated documents and pairs are folded.
namespace olrank {
namespace {

constexpr std::int64_t kStepsOfTraining = 20;

/// Pairs (2s, 2s + 1), every other one won by its second document.
std::vector<PairTerm> made_terms(std::int64_t n) {
  std::vector<PairTerm> terms;
  terms.reserve(n);
  for (std::int32_t s = 0; s < n; ++s) terms.push_back({2 * s, 2 * s + 1, 1.0, s % 2 == 0 ? 1.0 : 0.0});
  return terms;
}

/// A history and the networks that are trained on it, with arrays for several kernels or for one.
struct Training {
  Operands make;
  std::int64_t n;
  std::int64_t members;
  std::shared_ptr<MadeDocs> docs;
  Array<PairTerm> terms;
  Array<std::int32_t> offsets, ends, incidence_work;
  Array<float> centre;
  Array<double> step, losses, gradient;
  Array<float> rows, partial;
  Array<double> loss_sums;

  Training(const DeviceSizes& of, Stream stream, std::int64_t pairs, std::int64_t networks)
      : make{of},
        n(pairs),
        members(networks),
        docs(make_docs(of, stream, 2 * pairs, networks)),
        terms(make.these(made_terms(n))),
        offsets(make.empty<std::int32_t>({docs->docs + 1})),
        ends(make.empty<std::int32_t>({2 * n})),
        incidence_work(make.empty<std::int32_t>({device::incidence_workspace(docs->docs, n)})),
        centre{docs->theta.t * 0.5},
        // So small that θ does not change over any number of steps.
        step(make.full<double>({members}, 1e-15)),
        losses(make.empty<double>({2 * members})),
        gradient(make.empty<double>({members, docs->shape.parameters()})) {
    const device::TrainingSizes needed = device::training_sizes(docs->shape, members, docs->docs, n);
    rows = make.empty<float>({needed.rows});
    partial = make.empty<float>({needed.partial});
    loss_sums = make.empty<double>({needed.losses});
    find_terms(stream);
  }

  device::PairIncidence incidence() const { return {offsets, ends}; }
  void find_terms(Stream on) const {
    device::find_incidence(on, terms, n, docs->docs, incidence_work, incidence());
  }
  device::PairHistoryView history() const { return {docs->features, docs->docs, terms, n, incidence()}; }
  device::StackedObjective objective() const { return {1.0, prior_weight(), centre}; }
  double prior_weight() const { return 0.5 * real(make.sizes.width) * 10.0; }
  device::TrainingWorkspace work() const { return {rows, docs->scores, partial, loss_sums}; }

  void forward(Stream on, device::Multiplier by = device::Multiplier::kChosen) const {
    device::forward_history(docs->products(on), docs->stack(by), history(), work());
  }
  /// A step of gradient descent.
  void move(Stream on, device::Multiplier by = device::Multiplier::kChosen) const {
    device::pair_gradients(docs->products(on), docs->stack(by), history(), objective(), work(),
                           {nullptr, docs->theta, step});
  }
  at::Tensor gradient_by(Stream on, device::Multiplier by = device::Multiplier::kChosen) const {
    forward(on, by);
    device::pair_gradients(docs->products(on), docs->stack(by), history(), objective(), work(),
                           {gradient, nullptr, nullptr});
    return gradient.t;
  }

  libtorch::Terms terms_in_libtorch() const {
    const at::Tensor even = at::arange(0, 2 * n, 2, make.options<std::int64_t>());
    return {even, even + 1, at::ones({n}, make.options<float>())};
  }
  libtorch::TrainingStep in_libtorch() const {
    const libtorch::Terms those = terms_in_libtorch();
    return {docs->shape,
            {docs->features.t, those.first, those.second, those.weights,
             (1 - at::arange(n, make.options<std::int64_t>()).remainder(2)).to(at::kFloat), centre.t,
             prior_weight()}};
  }
};

using UseTraining = std::function<void(Stream, const Training&)>;

/// Work on a history whose scores are there.
PrepareWork on_history(const DeviceSizes& sizes, std::int64_t n, std::int64_t members,
                       const UseTraining& use) {
  return [=](Stream stream) {
    const auto training = std::make_shared<Training>(sizes, stream, n, members);
    training->forward(stream);
    return alone([=](Stream on) { use(on, *training); });
  };
}

DeviceWork step_work(const DeviceSizes& sizes, Stream stream, std::int64_t n, std::int64_t members) {
  const auto training = std::make_shared<Training>(sizes, stream, n, members);
  const libtorch::TrainingStep other = training->in_libtorch();
  const at::Tensor theta = training->docs->theta.t.clone();
  DeviceWork work = alone([=](Stream on) {
    training->forward(on);
    training->move(on);
  });
  work.libtorch = [=] { other.take(theta, 1e-15); };
  work.disagreement = [=](Stream on) {
    return disagreement_of(training->gradient_by(on), other.gradient(theta));
  };
  work.tolerance = 1e-4;  // sums in float32
  return work;
}

void add_steps(Launches& table, std::int64_t n, std::int64_t members) {
  const DeviceSizes sizes = table.sizes;
  const double p = real(table.p), all = real(members);
  const double passes = 4.0 * all * real(n) * p;  // a multiplication and an addition per parameter
  const double features = kFloatBytes * real(2 * n * sizes.features);
  const double hidden = kFloatBytes * all * real(2 * n * sizes.width);
  const double theta = kFloatBytes * all * p;
  const CaseParameters parameters{{"n", n}, {"N", members}, {"m", sizes.width}, {"d", sizes.features}};
  const Wanted wanted{table.share_at(n, members)};
  const LeastWork back{passes, features + hidden + 3.0 * theta, Arithmetic::kFloat};
  table.add("pair_training/perturb_labels", {{"n", n}, {"N", members}},
            // Ten rounds of Philox and a normal number.
            {100.0 * real(n) * all, real(n) * sizeof(PairTerm) + kDoubleBytes * real(n) * all},
            [=](Stream) {
              const Operands make{sizes};
              std::vector<PhiloxKey> made;
              for (std::int64_t member = 0; member < members; ++member)
                made.push_back(
                    make_key({.seed = static_cast<std::uint64_t>(member + 1), .purpose = Purpose::kProbe}));
              const auto terms = make.these(made_terms(n));
              const auto keys = make.these(made);
              const Array<std::uint32_t> round{make.these(std::vector<std::int32_t>{7}).t};
              const auto labels = make.empty<double>({members, n});
              return alone([=](Stream on) {
                device::perturb_labels(on, terms, n, members, keys, round, 0.3, labels);
              });
            });
  table.add("pair_training/forward_history", parameters,
            {passes, features + hidden + theta, Arithmetic::kFloat},
            on_history(sizes, n, members, [](Stream on, const Training& one) { one.forward(on); }), wanted);
  table.add("pair_training/pair_losses", parameters,
            {10.0 * all * real(n) + 3.0 * all * p,
             all * real(n) * (sizeof(PairTerm) + 2.0 * kFloatBytes) + 2.0 * theta},
            on_history(sizes, n, members, [](Stream on, const Training& one) {
              device::pair_losses(on, one.docs->stack(), one.history(), one.objective(), one.work(),
                                  one.losses);
            }));
  table.add("pair_training/pair_gradients", parameters, back,
            on_history(sizes, n, members, [](Stream on, const Training& one) { one.move(on); }), wanted);
  if (members == 1) {
    table.add("pair_training/score_gradient", parameters, back, [=](Stream stream) {
      const auto slopes = Operands{sizes}.full<double>({2 * n}, 1.0);
      return on_history(sizes, n, 1, [=](Stream on, const Training& one) {
        device::score_gradient(one.docs->products(on), one.docs->stack(), one.history(), slopes, 1.0,
                               one.work(), one.gradient);
      })(stream);
    });
  }
  table.add("training/step", parameters,
            {2.0 * passes, 2.0 * (features + hidden) + 4.0 * theta, Arithmetic::kFloat},
            [=](Stream stream) { return step_work(sizes, stream, n, members); },
            {wanted.share, kWantedTrainingRatio});
}

/// A step both ways, whichever is chosen at this width.
void add_step_by(Launches& table, std::int64_t n, std::int64_t width, device::Multiplier multiplier,
                 const std::string& name) {
  DeviceSizes sizes = table.sizes;
  sizes.width = width;
  const double p = real(ntk_shape(sizes.features, width, sizes.depth).parameters());
  table.add(name, {{"n", n}, {"m", width}, {"d", sizes.features}},
            {8.0 * real(n) * p,
             2.0 * kFloatBytes * real(2 * n * (sizes.features + width)) + 4.0 * kFloatBytes * p,
             Arithmetic::kFloat},
            [=](Stream stream) {
              const auto training = std::make_shared<Training>(sizes, stream, n, 1);
              DeviceWork work = alone([=](Stream on) {
                training->forward(on, multiplier);
                training->move(on, multiplier);
              });
              work.disagreement = [=](Stream on) {
                const at::Tensor expected = training->gradient_by(on, device::Multiplier::kOwn).clone();
                return disagreement_of(training->gradient_by(on, multiplier), expected);
              };
              work.tolerance = 1e-4;  // sums in float32
              return work;
            });
}

// --- a whole training in one kernel, of which "training/step" is a step by several -----------------

struct OneKernel : Training {
  Array<float> all_scores, parts;
  Array<std::uint8_t> gates;
  Array<double> slopes, sums;

  OneKernel(const DeviceSizes& of, Stream stream, std::int64_t pairs, std::int64_t networks)
      : Training(of, stream, pairs, networks) {
    const device::PersistentSizes needed = device::persistent_sizes(docs->shape, members, docs->docs, n);
    all_scores = make.empty<float>({needed.scores});
    parts = make.empty<float>({needed.partial});
    gates = make.empty<std::uint8_t>({needed.gates});
    slopes = make.empty<double>({needed.slopes});
    sums = make.empty<double>({needed.losses});
  }

  device::PersistentTraining whole(std::int64_t steps) const {
    device::PersistentTraining made;
    made.stack = docs->stack();
    made.history = history();
    made.objective = objective();
    made.steps = steps;
    made.step = step;
    made.workspace = {all_scores, parts, gates, slopes, sums};
    made.theta = docs->theta;
    made.began = losses;
    made.ended = made.began + members;
    return made;
  }
  /// The gradient of a first step that no member takes.
  at::Tensor first_gradient(Stream on) const {
    device::PersistentTraining stopping = whole(1);
    stopping.gradient = gradient;
    device::train_persistently(on, stopping);
    return gradient.t;
  }
};

void add_one_kernel(Launches& table, std::int64_t n, std::int64_t members) {
  if (!device::trains_persistently(table.shape, members)) return;
  const DeviceSizes sizes = table.sizes;
  // A pass forward and one back a step, and one forward for the loss at the end; documents are read once.
  const double pass = 4.0 * real(members * n) * real(table.p);
  table.add(
      "persistent_training/train_persistently",
      {{"n", n}, {"N", members}, {"J", kStepsOfTraining}, {"m", sizes.width}, {"d", sizes.features}},
      {(2.0 * real(kStepsOfTraining) + 1.0) * pass,
       kFloatBytes * (real(2 * n * sizes.features) + 2.0 * real(members * table.p)), Arithmetic::kFloat},
      [=](Stream stream) {
        const auto kept = std::make_shared<OneKernel>(sizes, stream, n, members);
        const libtorch::TrainingStep other = kept->in_libtorch();
        const at::Tensor theta = kept->docs->theta.t.clone();
        DeviceWork work =
            alone([=](Stream on) { device::train_persistently(on, kept->whole(kStepsOfTraining)); });
        work.libtorch = [=] {
          for (std::int64_t number = 0; number < kStepsOfTraining; ++number) other.take(theta, 1e-15);
        };
        work.disagreement = [=](Stream on) {
          return disagreement_of(kept->first_gradient(on), other.gradient(theta));
        };
        work.tolerance = 1e-4;  // sums in float32
        return work;
      },
      {0.0, kWantedTrainingRatio});
}

// --- the largest curvature ------------------------------------------------------------------------

DeviceWork curvature_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
  const auto training = std::make_shared<Training>(sizes, stream, n, 1);
  const Operands& make = training->make;
  const NetworkShape shape = training->docs->shape;
  const auto vector = make.randn<double>({shape.parameters()});
  const auto scratch = make.empty<double>({device::curvature_workspace(shape, training->docs->docs)});
  const auto state = make.these(std::vector<device::CurvatureState>(1));
  // No quotient is negative, so the iteration never settles.
  const device::CurvatureTask task{
      shape, training->docs->view(), training->terms, n, training->incidence(), -1.0, vector};
  device::begin_curvature(stream, task, vector, scratch, state);
  const auto own = [=](Stream on) { device::iterate_curvature(on, task, vector, scratch, state); };
  const libtorch::Terms terms = training->terms_in_libtorch();
  const auto form = [=](const at::Tensor& v) {
    return libtorch::curvature_product(shape, training->docs->first_rows(), terms,
                                       (v / v.norm()).to(at::kFloat));
  };
  DeviceWork work = alone(own);
  work.libtorch = [=] { form(vector.t); };
  work.disagreement = [=](Stream on) {
    const at::Tensor before = vector.t.clone();
    own(on);
    return disagreement_of(vector.t, form(before));
  };
  work.tolerance = 1e-4;  // sums over all documents in float32
  return work;
}

void add_curvature(Launches& table, std::int64_t n) {
  const DeviceSizes sizes = table.sizes;
  const std::int64_t p = table.p, docs = 2 * n;
  const CaseParameters parameters{{"n", n}, {"m", sizes.width}, {"d", sizes.features}};
  const double sums = 2.0 * real(docs) * real(p), rows = rows_bytes(table.shape, real(docs));
  const LeastWork once{sums, rows + kDoubleBytes * real(p)};
  const Wanted wanted{table.share_at(n)};
  table.add(
      "gradient_products/gradient_products", parameters, once,
      [=](Stream stream) {
        const Operands make{sizes};
        const auto made = make_docs(sizes, stream, docs);
        const auto v = make.randn<double>({p});
        const auto scratch = make.empty<double>({device::gradient_products_workspace(made->shape, docs)});
        const auto products = make.empty<double>({docs});
        return alone([=](Stream on) {
          device::gradient_products(on, made->shape, made->view(), v, scratch, products);
        });
      },
      wanted);
  table.add(
      "gradient_products/gradient_sum", parameters, once,
      [=](Stream stream) {
        const Operands make{sizes};
        const auto made = make_docs(sizes, stream, docs);
        const auto weights = make.randn<double>({docs});
        const auto scratch = make.empty<double>({device::gradient_sum_workspace(made->shape, docs)});
        const auto sum = make.empty<double>({p});
        return alone(
            [=](Stream on) { device::gradient_sum(on, made->shape, made->view(), weights, scratch, sum); });
      },
      wanted);
  table.add(
      "largest_curvature/iterate_curvature", parameters,
      {2.0 * sums, 2.0 * rows + 6.0 * kDoubleBytes * real(p)},
      [=](Stream stream) { return curvature_work(sizes, stream, n); }, wanted);
}

// --- impressions of four examined documents with two pairs each -----------------------------------

struct Impressions {
  std::int64_t n;
  Array<PairObservation> observations;
  Array<std::int32_t> work, offsets, items, first_doc, first_pair, rows;
  Array<std::uint8_t> clicks;
  Array<std::int64_t> numbers;
  Array<double> discounts, changes, weights, labels;
  Array<float> scores;

  Impressions(const DeviceSizes& of, Stream stream, std::int64_t pairs) : n(pairs / 2 * 2) {
    constexpr std::int32_t kListed = 4;
    const Operands make{of};
    std::vector<PairObservation> seen;
    std::vector<std::int32_t> docs_before{0}, pairs_before{0}, listed;
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
    observations = make.these(seen);
    first_doc = make.these(docs_before);
    first_pair = make.these(pairs_before);
    rows = make.these(listed);
    clicks = make.these(clicked);
    numbers = make.these(doc_numbers);
    discounts = make.these(std::vector<double>{1.0, 0.63, 0.5, 0.43});
    scores = make.randn<float>({2 * n});
    work = make.empty<std::int32_t>({2 * n});
    offsets = make.empty<std::int32_t>({n + 1});
    items = make.empty<std::int32_t>({n});
    for (Array<double>* each : {&changes, &weights, &labels}) *each = make.empty<double>({n});
    group(stream);
  }

  void group(Stream on) const { device::group_observations(on, observations, n, n, work, offsets, items); }
  void weigh(Stream on) const {
    device::ndcg_weights(on, {n / 2, first_doc, first_pair, rows, clicks, numbers, discounts}, observations,
                         n, n, offsets, items, 1, 2 * n, scores, changes, weights, labels);
  }
};

void add_lambdas(Launches& table, std::int64_t n) {
  const DeviceSizes sizes = table.sizes;
  const double observations = real(n) * sizeof(PairObservation);
  table.add("ndcg_weights/group_observations", {{"n", n}},
            {0.0, observations + 2.0 * kIndexBytes * real(n)}, [=](Stream stream) {
              const auto lists = std::make_shared<Impressions>(sizes, stream, n);
              return alone([=](Stream on) { lists->group(on); });
            });
  table.add("ndcg_weights/ndcg_weights", {{"n", n}},
            {20.0 * real(n), observations + 4.0 * kDoubleBytes * real(n) + 5.0 * kFloatBytes * real(2 * n)},
            [=](Stream stream) {
              const auto lists = std::make_shared<Impressions>(sizes, stream, n);
              return alone([=](Stream on) { lists->weigh(on); });
            });
}

// --- optimizers -----------------------------------------------------------------------------------

struct Optimizer {
  std::int64_t members, p;
  Array<float> theta;
  Array<double> gradient, step, position, first, second;
  Array<StepRates> rates;

  Optimizer(const DeviceSizes& of, std::int64_t networks, std::int64_t count, double decay)
      : members(networks), p(count) {
    const Operands make{of};
    theta = make.randn<float>({members, p});
    gradient = make.randn<double>({members, p});
    step = make.full<double>({members}, 1e-9);
    position.t = theta.t.to(at::kDouble);
    first = make.full<double>({members, p}, 0.0);
    second = make.full<double>({members, p}, 0.0);
    rates = make.these(std::vector{step_rates(3, decay)});
  }
  device::OptimizerState state() const { return {position, first, second}; }
};

void add_optimizers(Launches& table, std::int64_t members) {
  const DeviceSizes sizes = table.sizes;
  const std::int64_t p = table.p;
  const double numbers = real(members) * real(p);
  const auto add = [&](const char* name, double operations, double doubles, double decay,
                       const auto& take) {
    table.add(name, {{"N", members}, {"p", p}},
              {operations * numbers, numbers * (doubles * kDoubleBytes + kFloatBytes)}, [=](Stream) {
                const auto kept = std::make_shared<Optimizer>(sizes, members, p, decay);
                return alone([=](Stream on) { take(on, *kept); });
              });
  };
  add("optimizer_step/adam_step", 12.0, 7.0, 0.0, [](Stream on, const Optimizer& one) {
    device::adam_step(on, one.members, one.p, one.rates, one.gradient, one.step, one.state(), one.theta);
  });
  add("optimizer_step/decayed_step", 4.0, 3.0, 1e-9, [](Stream on, const Optimizer& one) {
    device::decayed_step(on, one.members, one.p, one.rates, one.gradient, one.step, one.state(), one.theta);
  });
  add("optimizer_step/nesterov_step", 5.0, 5.0, 0.0, [](Stream on, const Optimizer& one) {
    device::nesterov_step(on, one.members, one.p, one.gradient, one.step, one.state(), one.theta);
  });
}

}  // namespace

void add_training(Launches& table) {
  const DeviceSizes sizes = table.sizes;
  for (const std::int64_t n : sizes.pairs) {
    table.add("pair_incidence/find_incidence", {{"n", n}},
              {0.0, real(n) * (sizeof(PairTerm) + 4.0 * kIndexBytes)}, [=](Stream stream) {
                const auto training = std::make_shared<Training>(sizes, stream, n, 1);
                return alone([=](Stream on) { training->find_terms(on); });
              });
    for (const std::int64_t members : sizes.members) add_steps(table, n, members);
    for (const std::int64_t width : {sizes.width, sizes.wide}) {
      add_step_by(table, n, width, device::Multiplier::kOwn, "training/step_by_kernels");
      add_step_by(table, n, width, device::Multiplier::kLibrary, "training/step_by_library");
    }
    add_curvature(table, n);
    add_lambdas(table, n);
  }
  for (const std::int64_t members : sizes.members) add_optimizers(table, members);
  for (const std::int64_t n : sizes.pairs)
    for (const std::int64_t members : sizes.members) add_one_kernel(table, n, members);
}

}  // namespace olrank
