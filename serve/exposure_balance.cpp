#include "serve/exposure_balance.h"

#include <fmt/format.h>

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
  return fmt::format(
      "{{\"unfairness\":{},\"epsilon\":{},\"beta\":{},\"lists\":{},\"fair_share\":{},"
      "\"exposure\":{{\"A\":{},\"B\":{}}}}}",
      now.unfairness(), rule_.epsilon, rule_.beta, now.rounds(), fair_share(now), now.of(DocGroup::kA),
      now.of(DocGroup::kB));
}

std::string ExposureBalance::metrics() const {
  const ExposureLedger now = ledger();
  std::string text =
      metric_text("olrank_unfairness", "gauge",
                  "Exposure of group A less beta times that of group B, over all lists.", now.unfairness());
  text += metric_text("olrank_unfairness_limit", "gauge",
                      "Largest olrank_unfairness, either way, that is fair.", rule_.epsilon);
  text +=
      metric_text("olrank_fair_share", "gauge",
                  "Share of the lists after which the unfairness was within its limit.", fair_share(now));
  text +=
      "# HELP olrank_exposure_total Exposure of the documents of each group, over all lists.\n"
      "# TYPE olrank_exposure_total counter\n";
  for (const DocGroup group : {DocGroup::kA, DocGroup::kB})
    text += fmt::format("olrank_exposure_total{{group=\"{}\"}} {}\n", letter_of(group), now.of(group));
  return text;
}

}  // namespace olrank
