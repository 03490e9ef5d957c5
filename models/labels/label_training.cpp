#include "models/labels/label_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/data/query_weights.h"
#include "core/math/dcg.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"

namespace olrank {
namespace {

/// A linear model starts at 0, where RankCosine has no gradient: there it starts in a random direction.
std::vector<float> first_linear_theta(ListLoss loss, std::int64_t features, PhiloxKey key) {
  std::vector<float> theta(features);
  if (loss != ListLoss::kRankCosine) return theta;
  std::vector<double> direction(theta.size());
  RngStream(key, 0).unit_vector(direction);
  std::copy(direction.begin(), direction.end(), theta.begin());
  return theta;
}

/// Bytes for each parameter: θ, the best θ, and what the solver keeps.
double bytes_per_parameter(LabelOptimizer optimizer) {
  if (optimizer == LabelOptimizer::kAdam) return 2 * 4 + 4 * 8;
  if (optimizer == LabelOptimizer::kLbfgs) return 4 * 4 + 26 * 8;  // of these, 20 of its memory
  return 3 * 4 + (optimizer == LabelOptimizer::kOgdAverage ? 3 * 8 : 5 * 8);
}

/// Refuses a network before it is made that with its training does not fit into memory. Each thread has a
/// gradient.
void require_room(const LabelSettings& settings, std::int64_t features, int threads) {
  if (settings.network.network == NetworkForm::kModule) return;  // how large it is, it says once it is made
  const bool is_linear = settings.network.network == NetworkForm::kLinear;
  const auto parameters =
      static_cast<double>(is_linear ? features : network_shape(settings.network, features).parameters());
  const double bytes = parameters * (bytes_per_parameter(settings.optimizer) + 8.0 * threads);
  const auto memory = static_cast<double>(available_memory());
  if (bytes <= memory) return;
  throw_error<InvalidArgument>(
      "{:.0f} parameters and what {} keeps of them take {}, but this machine has {}: use {} or fewer "
      "threads.",
      parameters, name_of(settings.optimizer), readable_bytes(bytes), readable_bytes(memory),
      is_linear ? "fewer features" : "a smaller width or depth, fewer features,");
}

/// `gpu`, as LibTorch numbers them, is for modules.
std::unique_ptr<ScoreModel> make_model(const LabelSettings& settings, std::int64_t features, PhiloxKey key,
                                       std::optional<int> gpu, std::vector<float>& first_theta) {
  if (settings.network.network == NetworkForm::kLinear) {
    if (first_theta.empty()) first_theta = first_linear_theta(settings.loss, features, key);
    return std::make_unique<LinearModel>(features);
  }
  auto model = make_tangent_model(settings.network, features, gpu);
  if (first_theta.empty()) first_theta = model->first_parameters(key);
  return model;
}

}  // namespace

void require_order(const LabelledQueries& labels) {
  const std::vector<float>& weights = labels.data().contents().weights;
  if (!weights.empty() && *std::max_element(weights.begin(), weights.end()) == 0.0F) {
    throw DataError(
        "The training part", 0, 0,
        "All its queries have the weight 0, so there is nothing to learn: give one a weight above 0.");
  }
  for (std::int64_t query = 0; query < labels.queries(); ++query) {
    if (!weights.empty() && weights[query] == 0.0F) continue;
    if (graded_pairs(count_grades(labels.grades_of(query).of_doc)) > 0) return;
  }
  throw DataError("The training part", 0, 0,
                  fmt::format("In every query{} all documents have the same grade, so there is no order to "
                              "learn: give data with at least two grades in a query.",
                              weights.empty() ? "" : " with a weight above 0"));
}

MetricOptions label_metrics(const LabelSettings& settings) {
  MetricOptions options;
  options.empty_queries = settings.empty_queries;
  auto& cutoffs = options.cutoffs;
  if (std::find(cutoffs.begin(), cutoffs.end(), settings.cutoff) == cutoffs.end())
    cutoffs.insert(std::upper_bound(cutoffs.begin(), cutoffs.end(), settings.cutoff), settings.cutoff);
  return options;
}

LabelTraining::LabelTraining(const LabelSettings& settings, const LabelData& data, const TrialKeys& keys,
                             std::vector<float> first_theta, int threads,
                             const std::optional<LabelDevice>& device)
    : settings_(settings),
      train_(&data.train),
      vali_(data.vali),
      clicks_(data.clicks),
      device_(device),
      form_(settings.loss_form(data.most_grade)),
      context_(threads),
      labels_(data.train),
      evaluator_(label_metrics(settings)) {
  if (settings.patience > 0 && vali_ == nullptr) {
    throw InvalidArgument(
        "patience stops training by the validation part, and the data have none: set patience = 0, or give "
        "a validation part.");
  }
  if (device_ && form_.smooth_at > 1) {
    throw InvalidArgument(
        "A GPU computes smooth-dcg at one rank only: use --device cpu, or smooth_at = 1.");
  }
  refuse_sparse();
  require_room(settings, data.train.features(), threads);
  const bool on_libtorch = device_ && settings.network.network == NetworkForm::kModule;
  const std::optional<int> gpu = on_libtorch ? device_->libtorch_number(device_->gpu) : std::nullopt;
  model_ =
      make_model(settings, data.train.features(), keys.key(Purpose::kInitialisation), gpu, first_theta);
  objective_ = std::make_unique<LabelObjective>(*model_, labels_, form_, threads, make_lists(data.train),
                                                relative_weights(data.train), clicks_);
  if (clicks_ == nullptr) require_order(labels_);
  solver_ = make_label_solver(settings, *objective_, keys.key(Purpose::kBatch), std::move(first_theta));
}

void LabelTraining::refuse_sparse() const {
  if (!train_->is_sparse() && (vali_ == nullptr || !vali_->is_sparse())) return;
  if (settings_.network.network == NetworkForm::kModule) {
    throw InvalidArgument(
        "A LibTorch module needs dense features, and the data are sparse: use network = \"linear\" or "
        "\"mlp\", or set data.layout = \"dense\", with enough memory for all zeros.");
  }
  if (device_) {
    throw InvalidArgument(
        "A GPU needs dense features, and the data are sparse: use --device cpu, or set data.layout = "
        "\"dense\", with enough memory for all zeros.");
  }
}

/// None for a module, which LibTorch computes wherever it is.
std::unique_ptr<DeviceLists> LabelTraining::make_lists(const Dataset& data) {
  const NetworkSettings& network = settings_.network;
  if (!device_ || network.network == NetworkForm::kModule) return nullptr;
  DeviceListsSpec spec;
  spec.device = device_->gpu;
  spec.shape = network.network == NetworkForm::kLinear ? linear_shape(data.features())
                                                       : network_shape(network, data.features());
  spec.form = form_;
  spec.docs = &data;
  spec.grades = data.all_grades();
  spec.offsets = data.offsets();
  spec.bytes_for_docs = device_->bytes_for_docs;
  std::unique_ptr<DeviceLists> lists = device_->make_lists(spec);
  if (lists->docs_stay()) device_->bytes_for_docs -= spec.docs->all_rows().bytes();
  return lists;
}

DeviceLists* LabelTraining::on_device(const Dataset& data) {
  if (&data == train_ || objective_->device() == nullptr) return objective_->device();
  std::unique_ptr<DeviceLists>& lists = evaluated_[&data];
  if (!lists) lists = make_lists(data);
  return lists.get();
}

double LabelTraining::score(const Dataset& data, std::span<const float> theta) {
  scores_.resize(data.docs());
  double sum = 0.0;
  if (DeviceLists* lists = on_device(data)) {
    sum = lists->score(theta, scores_);
  } else {
    slopes_.resize(data.docs());
    model_->score(context_, theta, data.all_rows(), scores_);
    sum = list_losses(context_, form_, scores_, data.all_grades(), data.offsets().subspan(1), slopes_);
  }
  return data.queries() > 0 ? sum / static_cast<double>(data.queries()) : 0.0;
}

std::span<const float> LabelTraining::score(const Dataset& data) {
  score(data, theta());
  return scores_;
}

LabelTraining::Point LabelTraining::point(std::optional<double> loss, std::span<const float> theta) {
  Point point{epoch_, loss, std::nullopt, {}};
  if (vali_ == nullptr) return point;
  point.vali_loss = score(*vali_, theta);
  point.vali = evaluator_.evaluate(*vali_, scores_, context_);
  const auto& cutoffs = evaluator_.options().cutoffs;
  const auto place = std::find(cutoffs.begin(), cutoffs.end(), settings_.cutoff) - cutoffs.begin();
  const double ndcg = point.vali.ndcg[static_cast<std::size_t>(place)];
  if (settings_.patience > 0 && (best_theta_.empty() || ndcg > best_ndcg_)) {
    best_ndcg_ = ndcg;
    best_epoch_ = epoch_;
    best_theta_.assign(theta.begin(), theta.end());
  }
  return point;
}

LabelTraining::Point LabelTraining::evaluate_first() {
  return point(std::nullopt, solver_->theta());
}

LabelTraining::Point LabelTraining::advance() {
  const double loss = solver_->advance();
  ++epoch_;
  if (clicks_ != nullptr && clicks_->changes()) {
    score(*train_, solver_->theta());
    clicks_->revise(scores_);
  }
  return point(loss, solver_->theta());
}

bool LabelTraining::finished() const {
  if (epoch_ >= settings_.most_epochs() || solver_->converged()) return true;
  return settings_.patience > 0 && epoch_ - best_epoch_ >= settings_.patience;
}

std::span<const float> LabelTraining::theta() const {
  if (settings_.patience > 0 && !best_theta_.empty()) return best_theta_;
  return solver_->theta();
}

double LabelTraining::final_objective() {
  return objective_->mean_of_all(theta(), {}) + penalty(settings_, theta());
}

LabelTraining::Evaluation LabelTraining::evaluate(const Dataset& data) {
  const double loss = score(data, theta());
  return {loss, Evaluator(evaluator_.options()).evaluate(data, scores_, context_)};
}

void LabelTraining::fields(StateFields& state) {
  state.numbers("training.epoch", epoch_);
  state.numbers("training.best_epoch", best_epoch_);
  state.numbers("training.best_ndcg", best_ndcg_);
  state.any("training.best_theta", best_theta_);
  state.part(*solver_);
  if (clicks_ != nullptr) clicks_->fields(state);
}

}  // namespace olrank
