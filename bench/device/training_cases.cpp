
#include "bench/device/libtorch_forms.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/gradient_products.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/persistent_training.h"
#include "cuda/ops/query_inputs.h"
#include "cuda/ops/replay.h"

// The operations of a round's training, on a history of n pairs of 2n distinct documents: the worst case,
// as repeated documents and pairs are folded.
namespace olrank {
namespace {

constexpr std::int64_t kStepsOfTraining = 20;
constexpr double kFloatTolerance = 1e-4;  // sums over all documents in float32

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

  void forward(Stream on) const {
    device::forward_history(docs->products(on), docs->stack(), history(), work());
  }
  /// A step of gradient descent.
  void move(Stream on) const {
    device::pair_gradients(docs->products(on), docs->stack(), history(), objective(), work(),
                           {nullptr, docs->theta, step});
  }
  at::Tensor gradient_in(Stream on) const {
    forward(on);
    device::pair_gradients(docs->products(on), docs->stack(), history(), objective(), work(),
                           {gradient, nullptr, nullptr});
    return gradient.t;
  }

  libtorch::TrainingStep in_libtorch() const {
    const at::Tensor even = at::arange(0, 2 * n, 2, make.options<std::int64_t>());
    return {docs->shape,
            docs->features.t,
            even,
            even + 1,
            at::ones({n}, make.options<float>()),
            (1 - at::arange(n, make.options<std::int64_t>()).remainder(2)).to(at::kFloat),
            centre.t,
            prior_weight()};
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
  const auto own = [=](Stream on) {
    training->forward(on);
    training->move(on);
  };
  const auto disagreement = [=](Stream on) {
    return disagreement_of(training->gradient_in(on), other.gradient(theta));
  };
  return {.own = own,
          .libtorch = [=] { other.take(theta, 1e-15); },
          .disagreement = disagreement,
          .tolerance = kFloatTolerance};
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
  table.add("pair_training/forward_history", parameters,
            {passes, features + hidden + theta, Arithmetic::kFloat},
            on_history(sizes, n, members, [](Stream on, const Training& one) { one.forward(on); }), wanted);
  table.add("pair_training/pair_gradients", parameters, back,
            on_history(sizes, n, members, [](Stream on, const Training& one) { one.move(on); }), wanted);
  table.add("training/step", parameters,
            {2.0 * passes, 2.0 * (features + hidden) + 4.0 * theta, Arithmetic::kFloat},
            [=](Stream stream) { return step_work(sizes, stream, n, members); },
            {wanted.share, kWantedTrainingRatio});
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
    double* began = losses;
    return {.stack = docs->stack(),
            .history = history(),
            .objective = objective(),
            .steps = steps,
            .step = step,
            .workspace = {all_scores, parts, gates, slopes, sums},
            .theta = docs->theta,
            .began = began,
            .ended = began + members};
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
       kFloatBytes * (real(2 * n * sizes.features) + 2.0 * real(members * table.p)), Arithmetic::kTf32x3},
      [=](Stream stream) {
        const auto kept = std::make_shared<OneKernel>(sizes, stream, n, members);
        const libtorch::TrainingStep other = kept->in_libtorch();
        const at::Tensor theta = kept->docs->theta.t.clone();
        const auto form = [=] {
          for (std::int64_t number = 0; number < kStepsOfTraining; ++number) other.take(theta, 1e-15);
        };
        const auto disagreement = [=](Stream on) {
          return disagreement_of(kept->first_gradient(on), other.gradient(theta));
        };
        return DeviceWork{
            .own = [=](Stream on) { device::train_persistently(on, kept->whole(kStepsOfTraining)); },
            .libtorch = form,
            .disagreement = disagreement,
            .tolerance = kFloatTolerance};
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
  device::begin_curvature(stream, task, vector, state);
  return alone([=, kept = training](Stream on) {  // whose arrays the task names
    device::iterate_curvature(on, task, vector, scratch, state);
  });
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
      "drift_figures/drift_figures", {{"n", n}, {"columns", kProbes}},
      {2.0 * real(kProbes * (3 * p + n)), kDoubleBytes * real(kProbes * (2 * p + n))},
      [=](Stream) {
        const Operands make{sizes};
        const auto v = make.randn<double>({kProbes, p}), y = make.randn<double>({kProbes, p});
        const auto products = make.randn<double>({n, kProbes});
        const auto figures = make.empty<double>({3 * kProbes});
        device::DriftColumns columns{.parameters = p, .vectors = kProbes, .v = v, .own = y, .y = y};
        columns.rows = n;
        columns.left = columns.right = products;
        return alone([=](Stream on) {
          device::drift_figures(on, columns, reinterpret_cast<device::DriftFigure*>(figures.t.data_ptr()));
        });
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
  table.add("ndcg_weights/ndcg_weights", {{"n", n}},
            {20.0 * real(n), observations + 4.0 * kDoubleBytes * real(n) + 5.0 * kFloatBytes * real(2 * n)},
            [=](Stream stream) {
              const auto lists = std::make_shared<Impressions>(sizes, stream, n);
              return alone([=](Stream on) { lists->weigh(on); });
            });
}

// --- optimizers -----------------------------------------------------------------------------------

void add_adam(Launches& table, std::int64_t members) {
  const Operands make{table.sizes};
  const std::int64_t p = table.p;
  const double numbers = real(members) * real(p);
  table.add("optimizer_step/optimizer_step", {{"N", members}, {"p", p}},
            {12.0 * numbers, numbers * (7.0 * kDoubleBytes + kFloatBytes)}, [=](Stream) {
              const auto theta = make.randn<float>({members, p});
              const auto gradient = make.randn<double>({members, p});
              const auto step = make.full<double>({members}, 1e-9);
              const auto state = make.full<double>({3, members, p}, 0.0);
              const auto rates = make.these(std::vector{step_rates(3, 0.0)});
              return alone([=](Stream on) {
                double* position = state;
                device::optimizer_step(on, device::Step::kAdam, members, p, rates, gradient, step,
                                       {position, position + members * p, position + 2 * members * p},
                                       theta);
              });
            });
}

// --- what fills a history, a mini-batch and a sample ----------------------------------------------

void add_rows(Launches& table) {
  const Operands make{table.sizes};
  const std::int64_t docs = table.sizes.docs, features = table.sizes.features, p = table.p;
  constexpr std::int64_t kLesson = 2 * kRoundPairs;  // documents per round
  table.add("history_update/gather_docs", {{"docs", kLesson}, {"d", features}},
            {0.0, 2.0 * kFloatBytes * real(kLesson * features)}, [=](Stream) {
              const auto from = make.rand<float>({docs, features});
              const Array<std::int64_t> numbers{at::randint(docs, {kLesson}, make.options<std::int64_t>())};
              const auto to = make.empty<float>({kLesson, features});
              return compared(
                  [=](Stream on) { device::gather_docs(on, from, features, numbers, kLesson, to); },
                  [=] { return from.t.index_select(0, numbers.t); }, to.t, 0.0);
            });
  constexpr std::int64_t kBatch = 1024;
  table.add("mini_batch/gather_batch", {{"k", kBatch}, {"d", features}},
            {0.0, 4.0 * kFloatBytes * real(kBatch * features) +
                      real(kBatch) * real(2 * sizeof(PairTerm) + sizeof(PairObservation))},
            [=](Stream) {
              std::vector<PairTerm> terms;
              std::vector<PairObservation> seen;
              for (std::int32_t i = 0; i < kBatch; ++i) {
                terms.push_back({2 * i, 2 * i + 1, 1.0, 1.0});
                seen.push_back({i, -1, -1, 1});
              }
              const auto from = make.rand<float>({2 * kBatch, features});
              const auto terms_there = make.these(terms);
              const auto seen_there = make.these(seen);
              const Array<std::int32_t> order{at::randperm(kBatch, make.options<std::int32_t>())};
              device::BatchCursor at_order;
              at_order.order = order;
              const auto cursor = make.these(std::vector{at_order});
              const auto to = make.empty<float>({kBatch, 2 * features});
              const auto batch_terms = make.these(terms);
              return compared(
                  [=](Stream on) {
                    device::gather_batch(on, {from, features, terms_there, seen_there}, 1, cursor, kBatch,
                                         to, batch_terms);
                  },
                  [=] {
                    return from.t.view({kBatch, -1}).index_select(0, order.t);
                  },
                  to.t, 0.0);
            });
  table.add("replay/subtract_from_whole", {{"p", p}}, {0.0, 3.0 * kDoubleBytes * real(p)}, [=](Stream) {
    const auto gradient = make.rand<double>({p});
    const auto whole = make.rand<double>({p});
    return alone([=](Stream on) { device::subtract_from_whole(on, 1, p, whole, gradient); });
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
    add_curvature(table, n);
    add_lambdas(table, n);
  }
  for (const std::int64_t members : sizes.members) add_adam(table, members);
  for (const std::int64_t n : sizes.pairs)
    for (const std::int64_t members : sizes.members) add_one_kernel(table, n, members);
  add_rows(table);
}

}  // namespace olrank
