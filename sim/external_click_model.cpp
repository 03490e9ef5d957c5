#include "sim/external_click_model.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace olrank {

ExternalClickModel::ExternalClickModel(std::string name, std::shared_ptr<const ExternalUser> user)
    : name_(std::move(name)), user_(std::move(user)) {}

void ExternalClickModel::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                               std::uint32_t round, ClickLog& log) const {
  log.clicks = user_->click({round, grades.of_doc, shown, UserCoins({key.word[0], key.word[1]}, round)});
  log.examined.assign(shown.size(), 1);
  if (log.clicks.size() != shown.size()) {
    throw InvalidArgument(fmt::format(
        "User '{}' returned {} clicks in round {}, but was shown {} documents: return 0 or 1 for "
        "each.",
        name_, log.clicks.size(), round, shown.size()));
  }
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    if (log.clicks[rank] <= 1) continue;
    throw InvalidArgument(fmt::format(
        "User '{}' returned {} for document {} in round {}: return 1 for a click and 0 for no click.",
        name_, log.clicks[rank], shown[rank], round));
  }
}

}  // namespace olrank
