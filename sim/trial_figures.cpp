#include "sim/trial_figures.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace olrank {
namespace {

/// Sums behind a cosine.
struct Products {
  double ab = 0.0;
  double aa = 0.0;
  double bb = 0.0;

  std::optional<double> cosine() const {
    if (!(aa > 0.0 && bb > 0.0)) return std::nullopt;
    return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);  // beyond 1 only by rounding
  }
};

template <class A>
void add_products(std::span<const A> a, double mean_a, std::span<const float> b, double mean_b,
                  Products& sums) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] - mean_a;
    const double y = b[i] - mean_b;
    sums.ab += x * y;
    sums.aa += x * x;
    sums.bb += y * y;
  }
}

double mean_of(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

bool is_linear(const ModelTensors& model) {
  return std::find(model.architecture.begin(), model.architecture.end(),
                   std::pair<std::string, std::string>("architecture", "linear")) !=
         model.architecture.end();
}

}  // namespace

std::optional<double> centred_cosine(const Dataset& data, std::span<const float> a,
                                     std::span<const float> b) {
  assert(std::ssize(a) == data.docs() && a.size() == b.size());
  Products sums;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const auto first = static_cast<std::size_t>(data.offset(query));
    const auto docs = static_cast<std::size_t>(data.docs_of(query));
    const auto of_a = a.subspan(first, docs);
    const auto of_b = b.subspan(first, docs);
    add_products(of_a, mean_of(of_a), of_b, mean_of(of_b), sums);
  }
  return sums.cosine();
}

std::optional<double> cosine_to_offline(const ModelTensors& model, const Dataset& eval_set,
                                        std::span<const float> eval_scores, const OfflineModel& offline) {
  if (!is_linear(model)) return centred_cosine(eval_set, eval_scores, offline.eval_scores);
  // The members' sum has the direction of their mean.
  std::vector<double> theta(offline.theta.size());
  for (const ModelTensors::Tensor& tensor : model.tensors) {
    assert(tensor.values.size() == theta.size());
    for (std::size_t k = 0; k < theta.size(); ++k) theta[k] += tensor.values[k];
  }
  Products sums;
  add_products(std::span<const double>(theta), 0.0, offline.theta, 0.0, sums);
  return sums.cosine();
}

void LastLists::observe(double ndcg, const RandomNdcg& random) {
  if (std::ssize(lists_) == kRounds) lists_.pop_front();
  lists_.push_back({ndcg, random.mean, random.variance});
}

double LastLists::sum_of(double List::*figure) const {
  double sum = 0.0;
  for (const List& list : lists_) sum += list.*figure;
  return sum;
}

bool LastLists::worse_than_random() const {
  constexpr double kDeviations = 3.0;
  if (std::ssize(lists_) < kRounds) return false;
  const double margin = kDeviations * std::sqrt(sum_of(&List::random_variance));
  return sum_of(&List::ndcg) - sum_of(&List::random_mean) < -margin;
}

std::vector<double> LastLists::values() const {
  std::vector<double> values;
  for (const List& list : lists_)
    values.insert(values.end(), {list.ndcg, list.random_mean, list.random_variance});
  return values;
}

void LastLists::restore(std::span<const double> values) {
  assert(values.size() % 3 == 0);
  lists_.clear();
  for (std::size_t i = 0; i + 2 < values.size(); i += 3)
    lists_.push_back({values[i], values[i + 1], values[i + 2]});
}

namespace {

/// Random lists that estimate a user's probabilities of examination where no formula gives them.
constexpr std::int64_t kExaminationLists = 100'000;

/// Where the user goes on from a document of grade g with probability c_g, rank r is examined with the mean
/// of Π c over all choices of r − 1 documents: an elementary symmetric mean, which grows document by
/// document.
void add_query(std::span<const double> goes_on, std::span<const std::uint8_t> grades, std::int64_t ranks,
               std::vector<double>& means, std::vector<double>& sums, std::vector<std::int64_t>& counts) {
  means.assign(ranks, 0.0);
  means[0] = 1.0;  // of no documents
  std::int64_t docs = 0;
  for (const std::uint8_t grade : grades) {
    ++docs;
    for (std::int64_t chosen = std::min(docs, ranks - 1); chosen > 0; --chosen) {
      // This share of the choices among the first `docs` has the latest document.
      const double share = static_cast<double>(chosen) / static_cast<double>(docs);
      means[chosen] = (1.0 - share) * means[chosen] + share * goes_on[grade] * means[chosen - 1];
    }
  }
  for (std::int64_t rank = 0; rank < std::min(ranks, docs); ++rank) {
    sums[rank] += means[rank];
    ++counts[rank];
  }
}

void estimate(const ClickModel& user, const Dataset& train, std::int64_t lists, TrialKeys keys,
              std::vector<double>& sums, std::vector<std::int64_t>& counts) {
  const PhiloxKey list_key = keys.key(Purpose::kProbe);
  const PhiloxKey click_key = keys.key(Purpose::kClick);
  const PartNames names = names_of(train);
  std::vector<std::int32_t> docs;
  ClickLog log;
  for (std::int64_t list = 1; list <= lists; ++list) {
    const auto round = static_cast<std::uint32_t>(list);
    RngStream coins(list_key, round);
    const std::int64_t query = coins.index_of(train.queries());
    docs.resize(train.docs_of(query));
    std::iota(docs.begin(), docs.end(), 0);
    coins.shuffle(std::span(docs));
    const auto shown = std::span<const std::int32_t>(docs).first(std::min(docs.size(), sums.size()));
    const QueryDocs of_query{.query = query,
                             .first_doc = train.offset(query),
                             .features = train.rows_of(query),
                             .names = &names};
    user.click({train.grades_of(query), &of_query}, shown, click_key, round, log);
    for (std::size_t rank = 0; rank < shown.size(); ++rank) {
      sums[rank] += log.examined[rank];
      ++counts[rank];
    }
  }
}

}  // namespace

Examination examination_of(const ClickModel& user, const Dataset& train, std::int64_t ranks,
                           std::int64_t lists, std::int64_t fold, const std::string& user_name) {
  Examination examination;
  const auto law = user.examination_law(ranks);
  if (law && !law->by_rank.empty()) {
    examination.by_rank = law->by_rank;
  } else {
    std::vector<double> sums(ranks, 0.0);
    std::vector<std::int64_t> counts(ranks, 0);
    if (law) {
      std::vector<double> means;
      for (std::int64_t query = 0; query < train.queries(); ++query)
        add_query(law->goes_on, train.grades_of(query), ranks, means, sums, counts);
    } else {
      estimate(user, train, lists, TrialKeys::of(0, static_cast<std::uint64_t>(fold), user_name), sums,
               counts);
      examination.lists = lists;
    }
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      examination.by_rank.push_back(counts[rank] > 0 ? sums[rank] / static_cast<double>(counts[rank])
                                                     : 0.0);
  }
  const double first = examination.by_rank.front();
  if (first > 0.0) {
    for (double& probability : examination.by_rank) probability /= first;
  }
  return examination;
}

PlannedFairness make_trial_fairness(const GroupSettings& groups, const std::vector<double>& beta,
                                    const ClickModel& user, const Dataset& train, std::int64_t cutoff,
                                    std::int64_t fold, const std::string& user_name) {
  PlannedFairness planned;
  if (groups.examination.empty()) {
    planned.examination = examination_of(user, train, cutoff, kExaminationLists, fold, user_name);
  } else {
    planned.examination.by_rank.assign(groups.examination.begin(), groups.examination.begin() + cutoff);
  }
  planned.fairness.rule.examination = planned.examination.by_rank;
  planned.fairness.rule.beta = beta;
  planned.fairness.rule.epsilon = groups.epsilon * planned.examination.by_rank.front();
  planned.fairness.exposure = groups.exposure;
  return planned;
}

}  // namespace olrank
