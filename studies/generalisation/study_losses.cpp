#include "studies/generalisation/study_losses.h"

#include <string_view>

#include "core/error.h"

namespace olrank {

PhiloxKey study_key(std::int64_t seed, StudyDraw draw) {
  constexpr std::string_view kName = "generalisation";
  return make_key({.seed = static_cast<std::uint64_t>(seed),
                   .purpose = Purpose::kSynthetic,
                   .fold = 0,
                   .click_model = name_hash(kName.data(), kName.size()),
                   .member = static_cast<std::uint64_t>(draw)});
}

StudyLoss study_loss(const std::string& name, int most_grade) {
  constexpr std::string_view kMean = "-mean";
  constexpr std::string_view kTopTen = "-10";
  StudyLoss loss{name, {}};
  loss.form.most_grade = most_grade;
  loss.form.pair_mean = name.ends_with(kMean);
  std::string_view base = name;
  if (loss.form.pair_mean) base.remove_suffix(kMean.size());
  if (base.ends_with(kTopTen)) {
    loss.form.smooth_at = 10;
    base.remove_suffix(kTopTen.size());
  }
  for (const auto& [value, known] : EnumNames<ListLoss>::values) {
    if (known == base) {
      loss.form.loss = value;
      return loss;
    }
  }
  throw InvalidArgument("The study has no loss '" + name + "'.");
}

std::vector<StudyLoss> list_length_losses(int most_grade) {
  std::vector<StudyLoss> losses;
  for (const char* name : {"listnet", "smooth-dcg", "smooth-dcg-10", "ranksvm", "ranksvm-mean", "listmle"})
    losses.push_back(study_loss(name, most_grade));
  return losses;
}

}  // namespace olrank
