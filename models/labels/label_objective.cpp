#include "models/labels/label_objective.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/math/dcg.h"

namespace olrank {
namespace {

/// Documents of a block, unless one query alone has more: those of a linear model stay in the cache from
/// scores to gradient, and products of networks are long enough.
constexpr std::int64_t kDocsPerBlock = 1024;
/// Blocks whose gradients wait to be summed in their order.
constexpr std::size_t kBlocksPerGroup = 16;
constexpr std::size_t kMostWaiting = 1 << 22;  // numbers of those gradients: 32 MiB
constexpr std::int64_t kParametersPerTask = 4096;

void require_finite(double sum_of_losses) {
  if (std::isfinite(sum_of_losses)) return;
  throw NumericError(
      "The loss is no longer finite: use a lower learning_rate, a larger l2 or normalised features.");
}

}  // namespace

LabelObjective::LabelObjective(const ScoreModel& model, const LabelledQueries& labels,
                               const ListLossForm& form, int threads, std::unique_ptr<DeviceLists> device,
                               std::vector<double> weights, const ClickTargets* clicks)
    : model_(model),
      labels_(labels),
      weights_(std::move(weights)),
      clicks_(clicks),
      form_(form),
      context_(threads),
      device_(std::move(device)),
      all_(labels.queries()) {
  std::iota(all_.begin(), all_.end(), 0);
  for (int worker = 0; worker < threads; ++worker) workers_.push_back(std::make_unique<Worker>());
}

void LabelObjective::split(std::span<const std::int64_t> queries) {
  blocks_.clear();
  Block block;
  for (std::size_t place = 0; place < queries.size(); ++place) {
    block.docs += labels_.data().docs_of(queries[place]);
    block.end = place + 1;
    if (block.docs < kDocsPerBlock) continue;
    blocks_.push_back(block);
    block = {place + 1, place + 1, 0};
  }
  if (block.begin < block.end) blocks_.push_back(block);
}

/// Adjacent queries are read where they are, others are copied next to each other.
FeatureMatrix LabelObjective::documents_of(Worker& worker, std::span<const std::int64_t> queries) const {
  worker.list_ends.clear();
  worker.grades.clear();
  worker.weights.clear();
  const Dataset& data = labels_.data();
  const std::int64_t features = data.features();
  std::int64_t docs = 0;
  bool adjacent = true;
  for (std::size_t place = 0; place < queries.size(); ++place) {
    docs += data.docs_of(queries[place]);
    worker.list_ends.push_back(docs);
    const auto grades = labels_.grades_of(queries[place]).of_doc;
    worker.grades.insert(worker.grades.end(), grades.begin(), grades.end());
    if (!weights_.empty()) worker.weights.push_back(weights_[queries[place]]);
    adjacent = adjacent && queries[place] == queries.front() + static_cast<std::int64_t>(place);
  }
  if (data.is_sparse()) {
    FeatureMatrix rows = data.rows_of(queries.front());
    if (!adjacent) {
      worker.rows.truncate(0);
      for (const std::int64_t query : queries) worker.rows.append_rows(data.rows_of(query));
      rows = worker.rows.matrix(features);
    }
    rows.docs = docs;
    rows.list_ends = worker.list_ends;
    return rows;
  }
  if (adjacent) return {data.features_of(queries.front()).values, docs, features, worker.list_ends};
  worker.values.resize(docs * features);
  float* to = worker.values.data();
  for (const std::int64_t query : queries) {
    to = std::copy_n(data.features_of(query).values, data.docs_of(query) * features, to);
  }
  return {worker.values.data(), docs, features, worker.list_ends};
}

double LabelObjective::click_losses(std::span<const std::int64_t> queries, std::span<const float> scores,
                                    std::span<double> slopes) const {
  double sum = 0.0;
  std::int64_t begin = 0;
  for (const std::int64_t query : queries) {
    const std::int64_t docs = labels_.data().docs_of(query);
    sum += clicks_->loss(labels_.data().offset(query), scores.subspan(begin, docs),
                         slopes.subspan(begin, docs));
    begin += docs;
  }
  return sum;
}

double LabelObjective::add_block(Worker& worker, std::span<const float> theta,
                                 std::span<const std::int64_t> queries, std::span<double> gradient) const {
  const FeatureMatrix docs = documents_of(worker, queries);
  double loss = 0.0;
  const auto find_slopes = [&](std::span<const float> scores, std::span<double> slopes) {
    loss = clicks_ != nullptr ? click_losses(queries, scores, slopes)
                              : list_losses(worker.context, form_, scores, worker.grades, worker.list_ends,
                                            slopes, worker.weights);
  };
  if (!gradient.empty()) {
    model_.find_score_gradient(worker.context, theta, docs, find_slopes, gradient);
    return loss;
  }
  Scratch& scratch = worker.context.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<float>(docs.docs);
  model_.score(worker.context, theta, docs, scores);
  find_slopes(scores, scratch.take<double>(docs.docs));
  return loss;
}

double LabelObjective::mean(std::span<const float> theta, std::span<const std::int64_t> queries,
                            std::span<double> gradient) {
  assert(std::ssize(theta) == parameters() && (gradient.empty() || gradient.size() == theta.size()));
  std::fill(gradient.begin(), gradient.end(), 0.0);
  if (queries.empty()) return 0.0;
  const double sum =
      device_ ? device_->losses(theta, queries, gradient) : sum_of_blocks(theta, queries, gradient);
  require_finite(sum);
  const double share = 1.0 / static_cast<double>(queries.size());
  for (double& entry : gradient) entry *= share;
  return sum * share;
}

double LabelObjective::adam_pass(const AdamPass& pass, const AdamState& state) {
  double sum = 0.0;
  if (device_) {
    sum = device_->adam_pass(pass, state);
    require_finite(sum);
    return sum;
  }
  gradient_.resize(state.theta.size());
  for (std::int64_t number = 0; number < pass.steps(); ++number) {
    const std::int64_t begin = number * pass.batch;
    const auto queries = pass.order.subspan(begin, std::min(pass.batch, std::ssize(pass.order) - begin));
    sum += mean(state.theta, queries, gradient_) * static_cast<double>(queries.size());
    adam_step(pass.steps_before + number + 1, pass.step, pass.decay, gradient_, state.moments,
              state.position, state.theta);
  }
  return sum;
}

/// The sum of the losses, and of their gradients.
double LabelObjective::sum_of_blocks(std::span<const float> theta, std::span<const std::int64_t> queries,
                                     std::span<double> gradient) {
  split(queries);
  const std::size_t parameters = gradient.size();
  losses_.assign(blocks_.size(), 0.0);
  // Blocks are summed in their order however many wait.
  const std::size_t waiting = std::min(
      kBlocksPerGroup, std::max(workers_.size(), kMostWaiting / std::max<std::size_t>(parameters, 1)));
  partial_.resize(std::min(blocks_.size(), waiting) * parameters);
  for (std::size_t group = 0; group < blocks_.size(); group += waiting) {
    const std::size_t count = std::min(waiting, blocks_.size() - group);
    context_.for_blocks(
        static_cast<std::int64_t>(count), 1, [&](std::int64_t task, std::int64_t, int worker) {
          const Block& block = blocks_[group + static_cast<std::size_t>(task)];
          losses_[group + static_cast<std::size_t>(task)] = add_block(
              *workers_[worker], theta, queries.subspan(block.begin, block.end - block.begin),
              std::span(partial_).subspan(static_cast<std::size_t>(task) * parameters, parameters));
        });
    context_.for_blocks(std::ssize(gradient), kParametersPerTask,
                        [&](std::int64_t begin, std::int64_t end, int) {
                          for (std::size_t block = 0; block < count; ++block) {
                            const double* part = partial_.data() + block * parameters;
                            for (std::int64_t k = begin; k < end; ++k) gradient[k] += part[k];
                          }
                        });
  }
  return std::accumulate(losses_.begin(), losses_.end(), 0.0);
}

double LabelObjective::longest_row() const {
  double longest_sq = 0.0;
  for (const std::int64_t query : all_) {
    const FeatureMatrix docs = labels_.data().rows_of(query);
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      double sum = 0.0;
      for (const float value : docs.is_sparse() ? docs.sparse_doc(doc).values : docs.doc(doc))
        sum += double{value} * double{value};
      longest_sq = std::max(longest_sq, sum);
    }
  }
  return std::sqrt(longest_sq);
}

double LabelObjective::largest_slopes() const {
  double largest = 0.0;
  for (const std::int64_t query : all_) {
    const auto grades = labels_.grades_of(query).of_doc;
    const double weight = weights_.empty() ? 1.0 : weights_[query];
    largest = std::max(largest,
                       weight * slope_bound(form_, std::ssize(grades), graded_pairs(count_grades(grades))));
  }
  return largest;
}

}  // namespace olrank
