#include "models/labels/label_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::int64_t kAdamEpochs = 50;
constexpr std::int64_t kFullBatchIterations = 500;

bool is_full_batch(LabelOptimizer optimizer) {
  return optimizer == LabelOptimizer::kLbfgs || optimizer == LabelOptimizer::kProximal;
}

/// A setting that counts only with some values of others.
struct LabelSettingUse {
  std::string_view key;
  bool (*counts)(const LabelSettings& settings);
  std::string_view needed;  // as a configuration says it
};

bool is_smooth(const LabelSettings& settings) {
  return settings.loss == ListLoss::kSmoothDcg;
}
bool is_network(const LabelSettings& settings) {
  return settings.network.network != NetworkForm::kLinear;
}
bool is_module(const LabelSettings& settings) {
  return settings.network.network == NetworkForm::kModule;
}
bool has_batches(const LabelSettings& settings) {
  return settings.optimizer == LabelOptimizer::kAdam;
}
bool has_step(const LabelSettings& settings) {
  return !is_full_batch(settings.optimizer);
}

constexpr std::string_view kSmooth = "loss = \"smooth-dcg\"";
constexpr std::string_view kNetwork = "network = \"mlp\"";
constexpr std::string_view kModule = "network = \"module\"";

constexpr std::array kUses = {
    LabelSettingUse{"smoothing", is_smooth, kSmooth},
    LabelSettingUse{"smooth_at", is_smooth, kSmooth},
    LabelSettingUse{"pair_mean", [](const LabelSettings& settings) { return has_pairs(settings.loss); },
                    "a loss of pairs, ranksvm, ranknet or lambdarank"},
    LabelSettingUse{"module", is_module, kModule},
    LabelSettingUse{"activation", is_module, kModule},
    LabelSettingUse{"width", is_network, kNetwork},
    LabelSettingUse{"depth", is_network, kNetwork},
    LabelSettingUse{"parameterisation", is_network, kNetwork},
    LabelSettingUse{"initialisation", is_network, kNetwork},
    LabelSettingUse{
        "l1", [](const LabelSettings& settings) { return settings.optimizer == LabelOptimizer::kProximal; },
        "optimizer = \"proximal\""},
    LabelSettingUse{"radius",
                    [](const LabelSettings& settings) {
                      return settings.optimizer == LabelOptimizer::kProximal ||
                             settings.optimizer == LabelOptimizer::kOgdAverage;
                    },
                    "optimizer = \"proximal\" or \"ogd-average\""},
    LabelSettingUse{"radius_norm", [](const LabelSettings& settings) { return settings.radius > 0.0; },
                    "a radius"},
    LabelSettingUse{"batch", has_batches, "optimizer = \"adam\""},
    LabelSettingUse{"learning_rate", has_step, "optimizer = \"adam\" or \"ogd-average\""},
    LabelSettingUse{"learning_rate_decay", has_batches, "optimizer = \"adam\""},
    LabelSettingUse{"tolerance",
                    [](const LabelSettings& settings) { return is_full_batch(settings.optimizer); },
                    "optimizer = \"lbfgs\" or \"proximal\""},
};

}  // namespace

const Schema& LabelSettings::schema() {
  using S = LabelSettings;
  static const Schema schema = [] {
    SchemaBuilder<S> builder("train", "One model from labels, for `olrank train`.");
    builder
        .field("loss", &S::loss, "loss of a query; the objective is its mean over queries, plus penalties")
        .field("smoothing", &S::smoothing, "temperature of the softmax in `smooth-dcg`", above(0))
        .symbol("σ")
        .field("smooth_at", &S::smooth_at,
               "the ranks that `smooth-dcg` counts: it is the expected DCG@k of lists that are drawn "
               "document by document from that softmax; more than 1 needs the CPU",
               {1, 100})
        .symbol("k")
        .field("pair_mean", &S::pair_mean,
               "divide the loss of a query's pairs by their number; otherwise the loss is their sum")
        .include(&S::network, NetworkSettings::schema())
        .field("optimizer", &S::optimizer,
               "`adam`: mini-batches of queries; `lbfgs`: all queries at once; `ogd-average`: a pass of "
               "one query a step, and the mean of all iterates; `proximal`: accelerated proximal gradient")
        .field("l2", &S::l2, "weight of the penalty λ/2·‖w‖²", {0})
        .symbol("λ")
        .field("l1", &S::l1, "weight of the penalty ‖w‖₁", {0})
        .field("radius", &S::radius,
               "largest ‖w‖, which a projection keeps; without `radius`, ‖w‖ has no bound", above(0))
        .symbol("W")
        .field("radius_norm", &S::radius_norm, "the norm that `radius` bounds")
        .field("epochs", &S::epochs,
               "largest number of passes over the queries, or of iterations of `lbfgs` and `proximal`; 0 "
               "means 50 for `adam`, 1 for `ogd-average` and 500 otherwise",
               {0})
        .field("batch", &S::batch, "queries of a step of `adam`", {1})
        .unit("queries")
        .field("learning_rate", &S::learning_rate,
               "step size; 0 means 0.01 for `adam`, and for `ogd-average` the step of its guarantee for "
               "the `radius` (1 without a radius)",
               {0})
        .symbol("η")
        .field("learning_rate_decay", &S::learning_rate_decay,
               "factor applied to the step size after each pass", above(0, 1))
        .field("tolerance", &S::tolerance,
               "stop once the length of the gradient is below this share of max(1, ‖w‖)", {0})
        .field("patience", &S::patience,
               "passes without a better NDCG on the validation part after which training stops; the best "
               "model is kept. 0 trains to the end and keeps the last",
               {0})
        .field("cutoff", &S::cutoff, "rank k of the NDCG@k that `patience` looks at", {1})
        .symbol("k")
        .field("empty_queries", &S::empty_queries,
               "how queries without a relevant document count in metrics")
        .field("seeds", &S::seeds, "seeds of first parameters and orders; one model for each", {0});
    Schema built = builder.build();
    // Covariances, which these two settings are about, play no part here.
    std::erase_if(built.settings, [](const Setting& setting) { return setting.key == "scaling"; });
    for (Setting& setting : built.settings) {
      setting.flag = setting.key;
      std::replace(setting.flag.begin(), setting.flag.end(), '_', '-');
    }
    return built;
  }();
  return schema;
}

std::int64_t LabelSettings::most_epochs() const {
  if (epochs > 0) return epochs;
  if (optimizer == LabelOptimizer::kAdam) return kAdamEpochs;
  return optimizer == LabelOptimizer::kOgdAverage ? 1 : kFullBatchIterations;
}

ListLossForm LabelSettings::loss_form(int most_grade) const {
  ListLossForm form;
  form.loss = loss;
  form.smoothing = smoothing;
  form.smooth_at = smooth_at;
  form.pair_mean = pair_mean;
  form.most_grade = most_grade;
  return form;
}

std::optional<std::string> why_ignored(const LabelSettings& settings, std::string_view key) {
  for (const LabelSettingUse& use : kUses) {
    if (use.key != key || use.counts(settings)) continue;
    return fmt::format("it counts only with {}. Remove it, or change that", use.needed);
  }
  return std::nullopt;
}

void check_label_settings(const LabelSettings& settings) {
  const bool needs_convexity =
      settings.optimizer == LabelOptimizer::kOgdAverage || settings.optimizer == LabelOptimizer::kProximal;
  if (needs_convexity && !is_convex(settings.loss)) {
    throw_error<InvalidArgument>(
        "optimizer = \"{}\" needs a convex loss, and \"{}\" is not: choose listnet, ranknet or listmle, or "
        "another optimizer.",
        name_of(settings.optimizer), name_of(settings.loss));
  }
  if (settings.optimizer == LabelOptimizer::kProximal && settings.loss == ListLoss::kRankSvm) {
    throw InvalidArgument(
        "optimizer = \"proximal\" needs a loss without kinks, and \"ranksvm\" has them: choose another "
        "loss, or optimizer = \"lbfgs\", \"ogd-average\" or \"adam\".");
  }
  if (needs_convexity && is_network(settings)) {
    throw_error<InvalidArgument>(
        "optimizer = \"{}\" needs an objective that is convex in the parameters, and that of network = "
        "\"{}\" is not: choose network = \"linear\", or optimizer = \"adam\".",
        name_of(settings.optimizer), name_of(settings.network.network));
  }
  if (settings.optimizer == LabelOptimizer::kLbfgs && settings.loss == ListLoss::kLambdaRank) {
    throw InvalidArgument(
        "loss = \"lambdarank\" has gradients but no objective that a line search could follow, as its "
        "weights change with the order: choose optimizer = \"adam\".");
  }
}

}  // namespace olrank
