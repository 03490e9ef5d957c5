#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/io/state_archive.h"
#include "core/throw_error.h"
#include "recommend/mter/mter_kernels.h"
#include "recommend/mter/mter_parameters.h"
#include "recommend/mter/mter_step.h"
#include "recommend/ranking_figures.h"
#include "recommend/recommender.h"

namespace olrank {
namespace {

constexpr std::int64_t kExplainedFeatures = 3;
constexpr std::int64_t kPhrasesOfFeature = 3;

MterForm form_of(RecommenderKind kind) {
  return kind == RecommenderKind::kMter    ? MterForm::kTucker
         : kind == RecommenderKind::kMterS ? MterForm::kSplit
                                           : MterForm::kShared;
}

/// The phrases that the training used as praise of each feature.
using FeaturePhrases = Groups<std::int32_t>;

FeaturePhrases praising_phrases(const TrainingData& data) {
  const Reviews& reviews = *data.reviews;
  std::vector<std::pair<std::int32_t, std::int32_t>> used;
  for (const std::int64_t review : data.train) {
    for (const Mention& mention : reviews.mentions_of(review)) {
      if (mention.sentiment > 0) used.emplace_back(mention.feature, mention.phrase);
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return grouped<std::int32_t>(reviews.names.features.size(), [&](const auto& add) {
    for (const auto& [feature, phrase] : used) add(feature, phrase);
  });
}

/// MTER and its variants, trained: ranks by x̂_ij(p+1), explains by the features of the highest x̂_ijk and
/// the phrases of the highest Ŷ^U_ikw · Ŷ^I_jkw among those that praise the feature. Jia, PhD thesis, UVA
/// 2022, Eq. (4.1.8).
class MterRecommender : public Recommender {
 public:
  /// The parameters may change between calls; refresh() follows each change.
  MterRecommender(std::shared_ptr<const MterParameters> parameters, FeaturePhrases phrases,
                  double highest_rating)
      : parameters_(std::move(parameters)), phrases_(std::move(phrases)), highest_rating_(highest_rating) {
    refresh();
  }

  void refresh() {
    if (parameters_->form != MterForm::kTucker) return;
    const std::int64_t width = parameters_->width();
    overall_.resize(width * width);
    AlignedVector<float> transposed(width * width);
    const FactorMatrix& features = parameters_->met(0, MterSide::kFeature);
    contract_core(parameters_->cores[0].values.data(), features.row(features.rows - 1),
                  parameters_->cores[0].rows, width, overall_.data(), transposed.data());
  }

  void score(std::int64_t user, std::span<float> scores) const override {
    const FactorMatrix& users = parameters_->met(0, MterSide::kUser);
    const FactorMatrix& features = parameters_->met(0, MterSide::kFeature);
    const std::int64_t width = users.width;
    AlignedVector<float> direction(width, 0.0F);
    const float* const own = users.row(user);
    if (parameters_->form == MterForm::kTucker) {
      for (std::int64_t r = 0; r < users.columns; ++r)
        add_scaled(own[r], overall_.data() + r * width, width, direction.data());
    } else {
      const float* const overall = features.row(features.rows - 1);
      for (std::int64_t i = 0; i < width; ++i) direction[i] = overall[i] * own[i];
    }
    score_rows(direction.data(), parameters_->met(0, MterSide::kItem), scores);
  }

  std::optional<Explanation> explain(std::int64_t user, std::int64_t item,
                                     const ReviewNames& names) const override {
    Explanation explanation;
    explanation.details = {{"rating", entry(0, user, item, names.features.size())},
                           {"scale", highest_rating_},
                           {"features", nlohmann::ordered_json::array()}};
    std::vector<double> liked(names.features.size());
    for (std::size_t feature = 0; feature < liked.size(); ++feature)
      liked[feature] = entry(0, user, item, static_cast<std::int64_t>(feature));
    for (const std::int32_t feature : largest_places(liked, kExplainedFeatures)) {
      const auto candidates = phrases_.of(feature);
      std::vector<double> strengths;
      for (const std::int32_t phrase : candidates)
        strengths.push_back(entry(1, user, phrase, feature) * entry(2, item, phrase, feature));
      nlohmann::ordered_json phrases = nlohmann::ordered_json::array();
      std::vector<std::string> quoted;
      for (const std::int32_t place : largest_places(strengths, kPhrasesOfFeature)) {
        const std::string phrase(names.phrases[candidates[place]]);
        phrases.push_back({{"phrase", phrase}, {"strength", strengths[place]}});
        quoted.push_back(fmt::format("“{}”", phrase));
      }
      const std::string name(names.features[feature]);
      explanation.details["features"].push_back(
          {{"feature", name}, {"sentiment", liked[feature]}, {"phrases", phrases}});
      const bool likes = liked[feature] >= (1.0 + highest_rating_) / 2.0;
      std::string sentence =
          fmt::format("You will probably {} the {} of {} ({:.1f} of {:g})", likes ? "like" : "not like",
                      name, names.items[item], liked[feature], highest_rating_);
      if (!quoted.empty()) sentence += fmt::format(": {}", fmt::join(quoted, ", "));
      explanation.sentences.push_back(sentence + ".");
    }
    return explanation;
  }

  void save(StateWriter& state) const override {
    const MterParameters& parameters = *parameters_;
    const std::vector<std::int64_t> shape = {
        static_cast<std::int64_t>(parameters.form), parameters.columns(MterSide::kUser),
        parameters.columns(MterSide::kItem), parameters.columns(MterSide::kFeature),
        parameters.columns(MterSide::kPhrase)};
    state.put("mter.shape", shape);
    state.put("mter.highest_rating", highest_rating_);
    state.put("mter.phrase_ends", phrases_.begin);
    state.put("mter.phrases", phrases_.values);
    save_fields(parameters, state, false);
  }

 private:
  /// x̂_ijk, Ŷ^U_ikw or Ŷ^I_jkw; feature p is the overall rating.
  double entry(std::size_t task, std::int64_t row, std::int64_t column, std::int64_t feature) const {
    const FactorMatrix& rows = parameters_->met(task, kRowSide[task]);
    const FactorMatrix& columns = parameters_->met(task, kColumnSide[task]);
    const FactorMatrix& features = parameters_->met(task, MterSide::kFeature);
    const float* const u = rows.row(row);
    const float* const v = columns.row(column);
    const float* const f = features.row(feature);
    double sum = 0.0;
    if (parameters_->form != MterForm::kTucker) {
      for (std::int64_t i = 0; i < rows.columns; ++i) sum += double{u[i]} * double{v[i]} * double{f[i]};
      return sum;
    }
    const FactorMatrix& core = parameters_->cores[task];
    for (std::int64_t layer = 0; layer < core.rows; ++layer) {
      double layer_sum = 0.0;
      for (std::int64_t r = 0; r < rows.columns; ++r)
        layer_sum += double{u[r]} * double{row_product(core.row(layer) + r * rows.width, v, rows.width)};
      sum += layer_sum * double{f[layer]};
    }
    return sum;
  }

  std::shared_ptr<const MterParameters> parameters_;
  FeaturePhrases phrases_;
  double highest_rating_;
  AlignedVector<float> overall_;  // the core's contraction with F of the overall rating
};

/// MTER and its variants. Jia, PhD thesis, UVA 2022, §4.1.
class MterTraining : public RecommenderTraining {
 public:
  MterTraining(const RecommendSettings& settings, const TrainingData& data)
      : RecommenderTraining(settings.passes),
        settings_(settings),
        counts_(data.counts()),
        tensors_(make_mter_tensors(data)),
        draws_(data.by_user, counts_.items),
        parameters_(std::make_shared<MterParameters>(form_of(settings.kind), settings_.factors, counts_)),
        step_(settings_.factors, tensors_, draws_, counts_, static_cast<std::uint64_t>(settings.seed)),
        model_(parameters_, praising_phrases(data), data.reviews->highest_rating) {
    parameters_->start(static_cast<std::uint64_t>(settings.seed), data.reviews->highest_rating);
    model_.refresh();
  }

  TrainingPassReport advance(ExecutionContext& context) override {
    TrainingPassReport report;
    MterLosses sum;
    for (std::int64_t iteration = 0; iteration < iterations(); ++iteration) {
      const MterLosses losses =
          step_.gradients(context, *parameters_, static_cast<std::uint32_t>(iteration_++));
      for (std::size_t task = 0; task < kMterTasks; ++task) {
        sum.squared_error[task] += losses.squared_error[task];
        report.entries += step_.batch_size(task);
      }
      sum.pairs += losses.pairs;
      report.pairs += step_.pairs().count();
      step_.update(context, *parameters_);
    }
    model_.refresh();
    report.pass = ++passed_;
    const double count = static_cast<double>(iterations());
    const double data_loss = sum.squared_error[0] + sum.squared_error[1] + sum.squared_error[2] +
                             settings_.factors.pair_weight * sum.pairs;
    report.losses = {{"loss", data_loss / count + penalty()},
                     {"preferences", sum.squared_error[0] / count},
                     {"user_phrases", sum.squared_error[1] / count},
                     {"item_phrases", sum.squared_error[2] / count},
                     {"pairs", sum.pairs / count},
                     {"penalty", penalty()}};
    if (!std::isfinite(report.losses[0].second)) {
      throw_error<NumericError>(
          "The loss became infinite in pass {}: choose a smaller learning_rate than {}.", passed_,
          settings_.factors.learning_rate);
    }
    return report;
  }

  const Recommender& model() const override { return model_; }

  nlohmann::ordered_json facts() const override {
    const double items = static_cast<double>(counts_.items);
    const double steps = static_cast<double>(settings_.passes * iterations());
    // ϕ of Eq. (4.1.11).
    const double pair_share = settings_.factors.pair_weight * static_cast<double>(step_.pairs().count()) *
                              steps / (static_cast<double>(counts_.users) * items * items);
    return {{"preference_entries", tensors_.preferences.size()},
            {"user_phrase_entries", tensors_.user_phrases.size()},
            {"item_phrase_entries", tensors_.item_phrases.size()},
            {"steps_of_pass", iterations()},
            {"relative_pair_weight", pair_share}};
  }

  void fields(StateFields& state) override {
    state.numbers("mter.passed", passed_);
    state.numbers("mter.iteration", iteration_);
    parameters_->fields(state, true);
    if (state.reads()) model_.refresh();
  }

 private:
  /// Steps of a pass: about as many entries are drawn as the tensors have.
  std::int64_t iterations() const {
    std::int64_t entries = 0;
    std::int64_t drawn = 0;
    for (const SparseTensor* tensor :
         {&tensors_.preferences, &tensors_.user_phrases, &tensors_.item_phrases}) {
      entries += tensor->size();
      drawn += std::min(tensor->size(), settings_.factors.batch);
    }
    return std::max<std::int64_t>((entries + drawn - 1) / std::max<std::int64_t>(drawn, 1), 1);
  }

  double penalty() const {
    const auto mean_square = [](const FactorMatrix& matrix) {
      double sum = 0.0;
      for (const float value : matrix.values) sum += double{value} * double{value};
      return matrix.rows > 0 ? sum / static_cast<double>(matrix.rows) : 0.0;
    };
    double factors = 0.0;
    double cores = 0.0;
    for (const FactorMatrix& matrix : parameters_->shared) factors += mean_square(matrix);
    for (const auto& task : parameters_->own) {
      for (const FactorMatrix& matrix : task) factors += mean_square(matrix);
    }
    for (const FactorMatrix& core : parameters_->cores) cores += mean_square(core);
    return settings_.factors.factor_penalty * factors + settings_.factors.core_penalty * cores;
  }

  RecommendSettings settings_;
  ReviewCounts counts_;
  MterTensors tensors_;
  PairDraws draws_;
  std::shared_ptr<MterParameters> parameters_;
  MterStep step_;
  MterRecommender model_;
  std::int64_t iteration_ = 0;
};

std::int64_t plan_mter(const RecommendSettings& settings, const ReviewCounts& counts, int) {
  const MterForm form = form_of(settings.kind);
  // Entries of tensors, three for a mention and one for a rating, while the mentions are sorted.
  const std::int64_t tensors = (3 * counts.mentions + counts.reviews) * 16 + counts.mentions * 16;
  return MterParameters::bytes(form, settings.factors, counts, true) +
         MterParameters::bytes(form, settings.factors, counts, false) +
         MterStep::bytes(form, settings.factors, counts) + tensors + counts.reviews * 4;
}

std::unique_ptr<Recommender> read_mter(StateReader& state, const ReviewCounts& counts) {
  std::array<std::int64_t, 5> shape{};
  state.get_into("mter.shape", std::span<std::int64_t>(shape));
  const auto highest_rating = state.get_one<double>("mter.highest_rating");
  FeaturePhrases phrases;
  phrases.begin = state.get<std::int64_t>("mter.phrase_ends");
  phrases.values = state.get<std::int32_t>("mter.phrases");
  const bool sizes = std::all_of(shape.begin() + 1, shape.end(),
                                 [](std::int64_t columns) { return columns >= 1 && columns <= 1024; });
  const bool lists = are_rows(phrases.begin, counts.features, phrases.values, counts.phrases);
  if (!sizes || !lists || shape[0] < 0 || shape[0] > 2) state.fail("The model's shape is damaged.");
  FactorSettings settings;
  settings.dimension = settings.user_dimension = shape[1];
  settings.item_dimension = shape[2];
  settings.feature_dimension = shape[3];
  settings.phrase_dimension = shape[4];
  auto parameters = std::make_shared<MterParameters>(static_cast<MterForm>(shape[0]), settings, counts);
  load_fields(*parameters, state, false);
  return std::make_unique<MterRecommender>(std::move(parameters), std::move(phrases), highest_rating);
}

constexpr std::array<std::string_view, 11> kMterKeys = {"user_dimension",
                                                        "item_dimension",
                                                        "feature_dimension",
                                                        "phrase_dimension",
                                                        "learning_rate",
                                                        "core_learning_rate",
                                                        "factor_penalty",
                                                        "core_penalty",
                                                        "pair_weight",
                                                        "batch",
                                                        "pairs"};
constexpr std::array<std::string_view, 6> kCanonicalKeys = {
    "dimension", "learning_rate", "factor_penalty", "pair_weight", "batch", "pairs"};

constexpr RecommenderKindRow row_of(RecommenderKind kind, std::string_view about,
                                    std::span<const std::string_view> keys) {
  return {kind, about, 100, keys, true, nullptr, plan_mter, start_training<MterTraining>, read_mter};
}

}  // namespace

constinit const RecommenderKindRow kMterKind = row_of(
    RecommenderKind::kMter, "tensors of preferences and phrases, with a core each, and pairs", kMterKeys);
constinit const RecommenderKindRow kMterSKind = row_of(
    RecommenderKind::kMterS, "mter with canonical decompositions, vectors partly shared", kCanonicalKeys);
constinit const RecommenderKindRow kMterSaKind = row_of(
    RecommenderKind::kMterSa, "mter with canonical decompositions, all vectors shared", kCanonicalKeys);

}  // namespace olrank
