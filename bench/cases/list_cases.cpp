#include <algorithm>

#include "bench/cases/case_list.h"
#include "core/math/list_loss.h"
#include "core/math/portable_exp.h"
#include "core/ops/list_loss.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

constexpr std::int64_t kQueries = 100;
constexpr std::int64_t kChunk = 512;             // of a ceiling, within the first cache
constexpr std::int64_t kTimesOfListMle = 45;     // of the integral
constexpr double kExponentialOperations = 31.0;  // of portable_exp_nonpositive()

/// Queries of V/2 to 3V/2 documents with grades from 0 to 4.
struct Lists {
  explicit Lists(std::int64_t docs_per_query) {
    const auto lengths = uniform_doubles(kQueries, 12);
    std::int64_t docs = 0;
    for (const double length : lengths) {
      docs += std::max<std::int64_t>(1, static_cast<std::int64_t>((0.5 + length) * real(docs_per_query)));
      ends.push_back(docs);
    }
    scores = uniform_floats(docs, 13);
    for (float& score : scores) score = 6.0F * score - 3.0F;
    for (const double grade : uniform_doubles(docs, 14)) {
      grades.push_back(static_cast<std::uint8_t>(5.0 * grade));
    }
    slopes.resize(length(docs));
  }

  std::int64_t pairs() const {
    std::int64_t sum = 0;
    for (std::size_t query = 0; query < ends.size(); ++query) {
      const std::int64_t first = query == 0 ? 0 : ends[query - 1];
      sum += pairs_of_grades(std::span(grades).subspan(length(first), length(ends[query] - first)));
    }
    return sum;
  }

  std::vector<std::int64_t> ends;
  std::vector<float> scores;
  std::vector<std::uint8_t> grades;
  std::vector<double> slopes;
};

OLRANK_VECTOR_CLONES
void bare_exponentials(const double* x, std::int64_t count, double* exps) {
  for (std::int64_t k = 0; k < count; ++k) exps[k] = portable_exp_nonpositive(x[k]);
}

OLRANK_VECTOR_CLONES
void bare_hinges(const double* x, double score, std::int64_t count, double* slopes) {
  for (std::int64_t k = 0; k < count; ++k) slopes[k] += hinge_slope(x[k] - score);
}

OLRANK_VECTOR_CLONES
void bare_pair_terms(const double* x, std::int64_t count, double* terms) {
  for (std::int64_t k = 0; k < count; ++k) terms[k] = misorder_loss(x[k]) + sigmoid(x[k]);
}

// What no form of a loss can do without, `count` times on numbers in the first cache: an exponential, a
// hinge, or loss and slope of a logistic pair.

std::function<void()> exponentials(std::int64_t count) {
  std::vector<double> x = uniform_doubles(kChunk, 15);
  for (double& value : x) value = -6.0 * value;
  return [count, x = std::move(x), exps = std::vector<double>(length(kChunk))]() mutable {
    for (std::int64_t begin = 0; begin < count; begin += kChunk) {
      bare_exponentials(x.data(), std::min(kChunk, count - begin), exps.data());
    }
  };
}

std::function<void()> hinges(std::int64_t count) {
  return [count, x = uniform_doubles(kChunk, 15), slopes = std::vector<double>(length(kChunk))]() mutable {
    for (std::int64_t begin = 0; begin < count; begin += kChunk) {
      bare_hinges(x.data(), 0.5, std::min(kChunk, count - begin), slopes.data());
    }
  };
}

std::function<void()> pair_terms(std::int64_t count) {
  std::vector<double> x = uniform_doubles(kChunk, 15);
  for (double& value : x) value = 6.0 * value - 3.0;
  return [count, x = std::move(x), terms = std::vector<double>(length(kChunk))]() mutable {
    for (std::int64_t begin = 0; begin < count; begin += kChunk) {
      bare_pair_terms(x.data(), std::min(kChunk, count - begin), terms.data());
    }
  };
}

}  // namespace

void add_list_cases(CaseList& list) {
  const std::int64_t docs_per_query = list.sizes().docs;
  const Lists lists(docs_per_query);
  const auto docs = std::ssize(lists.scores);
  const std::int64_t pairs = lists.pairs();
  const MemoryTraffic traffic{(kFloat + 1.0) * real(docs), 0.0, kDouble * real(docs)};
  for (const auto& [loss, name] : EnumNames<ListLoss>::values) {
    const std::int64_t terms = has_pairs(loss) ? pairs : docs;
    // Of kListMle two for each document above the lowest grade at each time.
    const std::int64_t exps = loss == ListLoss::kListNet   ? 2 * terms
                              : loss == ListLoss::kListMle ? 2 * kTimesOfListMle * terms
                                                           : terms;
    BenchCase work;
    work.name = "list_loss/list_losses_" + std::string(name);
    work.parameters = {{"queries", kQueries}, {"V", docs_per_query}};
    if (list.sizes().threads > 1) work.parameters.emplace_back("threads", list.sizes().threads);
    work.traffic = traffic;
    work.prepare = [context = list.context(), docs_per_query, form = ListLossForm{.loss = loss}] {
      return [of = context(), data = Lists(docs_per_query), form]() mutable {
        list_losses(*of, form, data.scores, data.grades, data.ends, data.slopes);
      };
    };
    if (loss == ListLoss::kRankCosine) {
      work.ceiling = CeilingKind::kMemory;
      work.operations = 10.0 * real(docs);
    } else if (loss == ListLoss::kRankSvm) {
      work.ceiling = CeilingKind::kOwn;
      work.operations = 4.0 * real(pairs);
      work.own_name = "hinges";
      work.own_body = hinges(pairs);
    } else if (loss == ListLoss::kLambdaRank) {
      work.ceiling = CeilingKind::kOwn;
      work.operations =
          (2.0 * kExponentialOperations + 6.0) * real(pairs);  // with the series of log(1 + x)
      work.own_name = "logistic pairs";
      work.own_body = pair_terms(pairs);
    } else {
      work.ceiling = CeilingKind::kOwn;
      work.operations = kExponentialOperations * real(exps);
      work.own_name = "exponentials";
      work.own_body = exponentials(exps);
    }
    list.add(std::move(work));
  }
}

}  // namespace olrank
