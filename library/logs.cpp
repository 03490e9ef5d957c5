#include "olrank/logs.h"

#include <optional>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/execution_context.h"
#include "logs/click_report.h"
#include "logs/off_policy.h"
#include "option_names.h"

namespace olrank {
std::string off_policy_values(const OffPolicyOptions& options, const RankingData* data) {
  return with_option_names([&] {
    OffPolicyRequest request;
    request.log = options.log;
    request.models = options.models;
    request.trust_code = options.trust_code;
    request.estimates = {.ranks = options.at,
                         .replicates = options.replicates,
                         .confidence = options.confidence,
                         .seed = options.seed,
                         .clip = options.clip};
    request.choose({options.policy, options.reward, options.estimators, options.click_model});
    request.check();
    std::optional<AtomicFile> page;
    if (!options.page.empty()) page.emplace(options.page);
    ExecutionContext context(options.threads > 0 ? options.threads : available_threads());
    const OffPolicyResult result =
        evaluate_off_policy(request, data != nullptr ? &data->dataset() : nullptr, context);
    if (page) {
      page->write(off_policy_page(request, result));
      page->commit();
    }
    return dump_json(off_policy_json(request, result), 2);
  });
}

std::string fit_click_models(const ClickFitOptions& options) {
  return with_option_names([&] {
    ClickReportRequest request;
    request.log = {.log = options.log, .holdout = options.holdout, .ranks = options.at};
    request.fit.iterations = options.iterations;
    request.choose(options.model);
    request.check();
    return dump_json(click_report_json(request, report_clicks(request)), 2);
  });
}

}  // namespace olrank
