#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "models/export/export_format.h"
#include "models/export/exported_layers.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// A model of raw features that search engines score one document at a time.
class EngineModel {
 public:
  /// Throws InvalidArgument for models that need more than that; `form` is the format in messages.
  EngineModel(const LoadedModel& model, std::string_view form)
      : normaliser_(model.normaliser),
        names_(model.feature_names.empty() ? plain_feature_names(normaliser_.features)
                                           : model.feature_names),
        layers_(exported_layers(model)) {
    if (normaliser_.scales_queries())
      throw InvalidArgument(
          fmt::format("A model of {} cannot be written as {}: it scales features within their query, but "
                      "search engines score each document alone. Use a model of the normalisation none or "
                      "zscore.",
                      model.is_additive() ? "additive form" : "the normalisation query-minmax", form));
    if (normaliser_.kind == Normalisation::kLog1pZscore)
      throw InvalidArgument(
          fmt::format("A model of the normalisation log1p-zscore cannot be written as {}: search engines "
                      "take no logarithms of features. Use a model of the normalisation none or zscore.",
                      form));
    require_feature_names(names_, normaliser_.features, "The model's feature_names");
    for (std::int64_t column = 0; column < normaliser_.columns(); ++column) {
      const std::int64_t feature = normaliser_.kept.empty() ? column : normaliser_.kept[column];
      if (!is_scaled() || normaliser_.scales[feature] > 0.0) inputs_.push_back({column, feature});
    }
    add_layers(model);
  }

  struct Input {
    std::int64_t column = 0;   // of the model's inputs
    std::int64_t feature = 0;  // of the raw ones
  };
  /// Those that are not constant.
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::string& name(const Input& input) const { return names_[input.feature]; }
  bool is_scaled() const { return normaliser_.kind == Normalisation::kZscore; }
  double mean(const Input& input) const { return normaliser_.means[input.feature]; }
  double deviation(const Input& input) const { return 1.0 / normaliser_.scales[input.feature]; }

  /// The members of an ensemble side by side, and their mean as the last layer.
  struct Layer {
    std::vector<std::vector<double>> matrix;
    std::vector<double> bias;
  };
  const std::vector<Layer>& layers() const { return all_; }

 private:
  void add_layers(const LoadedModel& model) {
    const auto members = std::ssize(model.members);
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      const NetworkLayer& layer = layers_[index].place;
      const bool is_first = index == 0;
      const bool is_last = index + 1 == layers_.size();
      const std::int64_t rows = is_last ? 1 : members * layer.rows;
      const std::int64_t columns = is_first ? std::ssize(inputs_) : members * layer.columns;
      Layer& all = all_.emplace_back();
      all.matrix.assign(rows, std::vector<double>(columns, 0.0));
      all.bias.assign(rows, 0.0);
      const double factor = is_last ? model.shape.output_scale / static_cast<double>(members) : 1.0;
      for (std::int64_t member = 0; member < members; ++member) {
        const float* theta = model.members[member].data();
        for (std::int64_t row = 0; row < layer.rows; ++row) {
          const std::int64_t to = is_last ? 0 : member * layer.rows + row;
          const float* weights = theta + layer.weight + row * layer.columns;
          if (layer.has_bias()) all.bias[to] += factor * theta[layer.bias + row];
          for (std::int64_t c = 0; c < (is_first ? columns : layer.columns); ++c) {
            const std::int64_t from = is_first ? inputs_[c].column : c;
            all.matrix[to][is_first ? c : member * layer.columns + c] += factor * weights[from];
          }
        }
      }
    }
  }

  const FittedNormaliser& normaliser_;
  std::vector<std::string> names_;
  std::vector<ExportedLayer> layers_;
  std::vector<Input> inputs_;
  std::vector<Layer> all_;
};

}  // namespace

std::string ltr_model_of(const LoadedModel& model, const std::string& name) {
  if (!model.is_linear())
    throw InvalidArgument(
        "A network cannot be written as ltr: the plugins of OpenSearch and Elasticsearch have linear "
        "models and trees alone. Let olrank serve rank instead, or choose --to solr.");
  const EngineModel engine(model, "ltr");
  auto weights = ordered_json::object();
  auto normalisers = ordered_json::object();
  for (std::size_t i = 0; i < engine.inputs().size(); ++i) {
    const EngineModel::Input& input = engine.inputs()[i];
    weights[engine.name(input)] = engine.layers().front().matrix.front()[i];
    if (engine.is_scaled())
      normalisers[engine.name(input)]["standard"] = {{"mean", engine.mean(input)},
                                                     {"standard_deviation", engine.deviation(input)}};
  }
  ordered_json inner = {{"type", "model/linear"}, {"definition", weights.dump()}};
  if (engine.is_scaled()) inner["feature_normalizers"] = std::move(normalisers);
  return ordered_json{{"model", {{"name", name}, {"model", std::move(inner)}}}}.dump(2) + "\n";
}

std::string solr_model_of(const LoadedModel& model, const std::string& name) {
  const EngineModel engine(model, "solr");
  auto features = ordered_json::array();
  for (const EngineModel::Input& input : engine.inputs()) {
    ordered_json feature = {{"name", engine.name(input)}};
    // Solr reads these numbers from texts.
    if (engine.is_scaled())
      feature["norm"] = {{"class", "org.apache.solr.ltr.norm.StandardNormalizer"},
                         {"params",
                          {{"avg", fmt::format("{}", engine.mean(input))},
                           {"std", fmt::format("{}", engine.deviation(input))}}}};
    features.push_back(std::move(feature));
  }
  auto params = ordered_json::object();
  if (model.is_linear()) {
    for (std::size_t i = 0; i < engine.inputs().size(); ++i)
      params["weights"][engine.name(engine.inputs()[i])] = engine.layers().front().matrix.front()[i];
  } else {
    for (const EngineModel::Layer& layer : engine.layers()) {
      const bool is_last = &layer == &engine.layers().back();
      params["layers"].push_back(
          {{"matrix", layer.matrix}, {"bias", layer.bias}, {"activation", is_last ? "identity" : "relu"}});
    }
  }
  const std::string kind = model.is_linear() ? "LinearModel" : "NeuralNetworkModel";
  return ordered_json{{"class", "org.apache.solr.ltr.model." + kind},
                      {"name", name},
                      {"features", std::move(features)},
                      {"params", std::move(params)}}
             .dump(2) +
         "\n";
}

}  // namespace olrank
