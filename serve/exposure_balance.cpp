#include "serve/exposure_balance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "serve/metrics.h"

namespace olrank {
namespace {

/// 1 before the first list.
double fair_share(const ExposureLedger& ledger) {
  if (ledger.rounds() == 0) return 1.0;
  return static_cast<double>(ledger.fair_rounds()) / static_cast<double>(ledger.rounds());
}

}  // namespace

std::string ExposureBalance::json() const {
  const ExposureLedger now = ledger();
  std::string exposure;
  for (std::size_t group = 0; group < rule_.groups(); ++group) {
    const auto one = static_cast<DocGroup>(group);
    exposure += fmt::format("{}\"{}\":{}", group > 0 ? "," : "", letter_of(one), now.of(one));
  }
  return fmt::format(
      "{{\"unfairness\":{},\"epsilon\":{},\"beta\":{},\"lists\":{},\"fair_share\":{},"
      "\"exposure\":{{{}}}}}",
      rule_.farthest(now.unfairness()), rule_.epsilon,
      rule_.beta.size() == 1 ? fmt::format("{}", rule_.beta.front())
                             : fmt::format("[{}]", fmt::join(rule_.beta, ",")),
      now.rounds(), fair_share(now), exposure);
}

std::string ExposureBalance::metrics() const {
  const ExposureLedger now = ledger();
  std::string text = metric_text(
      "olrank_unfairness", "gauge",
      "Exposure of group A less beta times that of group B, over all lists; of more groups, that "
      "of the two farthest apart.",
      rule_.farthest(now.unfairness()));
  text += metric_text("olrank_unfairness_limit", "gauge",
                      "Largest olrank_unfairness, either way, that is fair.", rule_.epsilon);
  text +=
      metric_text("olrank_fair_share", "gauge",
                  "Share of the lists after which the unfairness was within its limit.", fair_share(now));
  text +=
      "# HELP olrank_exposure_total Exposure of the documents of each group, over all lists.\n"
      "# TYPE olrank_exposure_total counter\n";
  for (std::size_t group = 0; group < rule_.groups(); ++group) {
    const auto one = static_cast<DocGroup>(group);
    text += fmt::format("olrank_exposure_total{{group=\"{}\"}} {}\n", letter_of(one), now.of(one));
  }
  return text;
}

}  // namespace olrank
