#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/ops/pair_training.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/persistent_training.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {

/// A history of random documents, on the host and on the device.
struct TestHistory {
  std::int64_t docs;
  std::vector<float> features;
  Given<PairTerm> terms;
  DeviceArray<float> features_there;
  DeviceArray<PairTerm> terms_there;
  DeviceArray<std::int32_t> offsets, ends;

  TestHistory(const NetworkShape& shape, std::int64_t doc_count, std::vector<PairTerm> all)
      : docs(doc_count),
        features(random_numbers(docs * shape.inputs, 63)),
        terms(std::move(all)),
        features_there(on_device(features)),
        terms_there(terms),
        offsets(docs + 1),
        ends(unset_on_device<std::int32_t>(2 * count())) {
    DeviceArray<std::int32_t> workspace(device::incidence_workspace(docs, count()));
    device::find_incidence(nullptr, terms_there, count(), docs, workspace, {offsets, ends});
    offsets.to_host();  // waits: the workspace goes
  }
  std::int64_t count() const { return std::ssize(terms); }
  device::PairHistoryView view() { return {features_there, docs, terms_there, count(), {offsets, ends}}; }
};

/// Members are trained with these sizes and settings.
struct TrainingCase {
  NetworkShape shape;
  std::int64_t docs = 2;
  std::int64_t terms = 1;
  std::int64_t members = 1;
  bool perturbed = false;  // members have labels, weights and linear terms of their own
  Optimizer optimizer = Optimizer::kGradientDescent;
  double rate = 0.01;  // short enough that losses fall
};

/// One case's numbers.
struct TrainingWorld {
  static constexpr double kPrior = 0.3;

  TrainingCase what;
  std::int64_t p;
  TestHistory history;
  Given<float> first, centre;
  Given<double> labels, weights, linear, steps;

  explicit TrainingWorld(const TrainingCase& of)
      : what(of),
        p(of.shape.parameters()),
        history(of.shape, of.docs,
                of.docs > 1 ? random_terms(of.docs, of.terms, 64) : std::vector<PairTerm>{}),
        first(stacked_theta(of.shape, of.members, 61)),
        centre(stacked_theta(of.shape, of.members, 62)) {
    for (const float draw : random_numbers(of.members * history.count(), 65))
      labels.push_back(double{draw});
    for (const double label : labels) weights.push_back(1.5 + label);
    for (const float draw : random_numbers(of.members * p, 66)) linear.push_back(double{draw});
    for (std::int64_t member = 0; member < of.members; ++member)
      steps.push_back(of.rate * static_cast<double>(member + 1));
  }

  /// The numbers of members from `member` on, as the device has them.
  device::PairHistoryView view(std::int64_t member = 0) {
    device::PairHistoryView found = history.view();
    if (what.perturbed) found.labels = labels + member * history.count();
    if (what.perturbed) found.weights = weights + member * history.count();
    return found;
  }
  device::StackedObjective objective(double data_scale, std::int64_t member = 0) const {
    return {data_scale, kPrior, centre + member * p, what.perturbed ? linear + member * p : nullptr};
  }

  FeatureMatrix matrix() const { return matrix_of(history.features, what.shape.inputs); }
  std::vector<PairTerm> terms_of(std::int64_t member) const {
    std::vector<PairTerm> terms = history.terms;
    for (std::size_t t = 0; t < terms.size() && what.perturbed; ++t) {
      terms[t].labels = labels[static_cast<std::size_t>(member) * terms.size() + t];
      terms[t].weight = weights[static_cast<std::size_t>(member) * terms.size() + t];
    }
    return terms;
  }
  PairObjective objective_of(double data_scale, std::int64_t member) const {
    const std::span<const double> own(linear);
    return {data_scale, kPrior, std::span<const float>(centre).subspan(member * p, p),
            what.perturbed ? own.subspan(member * p, p) : own.first(0)};
  }
};

}  // namespace olrank
