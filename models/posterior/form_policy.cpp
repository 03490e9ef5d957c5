#include "models/posterior/form_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text/byte_size.h"

namespace olrank {

bool FormPolicy::switches(std::int64_t pairs, std::int64_t added, std::int64_t docs) {
  excess_ += std::max(0.0, dual_operations(shape_, pairs, docs, kUsualPairs) -
                               primal_operations(shape_, pairs, docs, kUsualPairs));
  const std::int64_t all = pairs + added;
  const double needed = dual_bytes(load(all, added, docs)).all();
  const bool overflows = !fits(needed, all);
  const bool may_switch = form_ == CovarianceForm::kAuto && primal_fits(all);
  if (overflows && !may_switch) {
    throw Error(fmt::format(
        "The dual covariance of {} pairs needs {} of memory, and {} may be used: choose form = \"primal\" "
        "if {} "
        "parameters allow it, the diagonal covariance, or fewer rounds.",
        all, readable_bytes(needed), readable_bytes(std::max(0.0, usable(all))), shape_.parameters()));
  }
  return may_switch && (overflows || excess_ > conversion_operations(shape_, all));
}

bool FormPolicy::primal_fits(std::int64_t pairs) const {
  return fits(primal_bytes(load(pairs, 1, 0)).all(), pairs);
}

}  // namespace olrank
