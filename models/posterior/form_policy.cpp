#include "models/posterior/form_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text/byte_size.h"
#include "models/posterior/posterior_plan.h"

namespace olrank {

bool FormPolicy::switches(std::int64_t pairs, std::int64_t added, std::int64_t docs) {
  excess_ += std::max(0.0, dual_cost(shape_, pairs, docs, kUsualPairs).operations -
                               primal_cost(shape_, pairs, docs, kUsualPairs).operations);
  const std::int64_t all = pairs + added;
  const double needed = dual_cost(shape_, all, 0, 0).bytes;
  const bool overflows = memory_ > 0 && needed > static_cast<double>(memory_);
  const bool may_switch = form_ == CovarianceForm::kAuto && primal_fits(all);
  if (overflows && !may_switch) {
    throw Error(fmt::format(
        "The dual covariance of {} pairs needs {} of memory, and {} may be used: choose form = \"primal\" "
        "if {} "
        "parameters allow it, the diagonal covariance, or fewer rounds.",
        all, readable_bytes(needed), readable_bytes(static_cast<double>(memory_)), shape_.parameters()));
  }
  return may_switch && (overflows || excess_ > conversion_operations(shape_, all));
}

bool FormPolicy::primal_fits(std::int64_t pairs) const {
  return fits(primal_peak_bytes(shape_, pairs));
}

}  // namespace olrank
