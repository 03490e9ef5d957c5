#include "sim/trial_fairness.h"

#include <algorithm>
#include <numeric>

#include "core/online/trial_keys.h"

namespace olrank {
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
    user.click({train.grades_of(query)}, shown, click_key, round, log);
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
