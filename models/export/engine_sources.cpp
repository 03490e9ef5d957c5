#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <numbers>

#include "core/data/normaliser.h"
#include "core/throw_error.h"
#include "core/version.h"
#include "models/export/export_format.h"

namespace olrank {
namespace {

/// Writes C99 that compiles without a warning: anything unused is omitted.
class CSource {
 public:
  CSource(const LoadedModel& model, const std::string& name)
      : model_(model), layers_(exported_layers(model)), normaliser_(model.normaliser), name_(name) {}

  std::string write() {
    write_head();
    write_tables();
    write_normalise();
    write_score();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> pattern, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), pattern, std::forward<Args>(args)...);
  }

  bool is_log() const { return normaliser_.kind == Normalisation::kLog1pZscore; }
  bool is_zscore() const { return is_log() || normaliser_.kind == Normalisation::kZscore; }
  bool needs_libm() const { return is_log() || normaliser_.cosines > 0; }

  void write_head() {
    add("/* A ranking model, written by olrank {}.\n", version());
    for (const auto& [key, text] : model_.metadata) {
      if (key == "format") continue;  // of the model file
      add(" * {}:", key);
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string line = text.substr(begin, end - begin);
        std::replace(line.begin(), line.end(), '*', ' ');  // which could end the comment
        add("{}{}\n", begin == 0 ? " " : " *   ", line);
        begin = end + 1;
      }
      if (text.empty()) add("\n");
    }
    add(" *\n"
        " * {0}_normalise: the raw features of one query's documents, [docs x {0}_FEATURES] by rows, "
        "become\n"
        " *   inputs, [docs x {0}_INPUTS]; feature number f of the data is in column f - 1.\n"
        " * {0}_score: the score of one document from its {0}_INPUTS inputs; higher is better.{1}\n"
        " */\n"
        "#include <stddef.h>\n{2}\n"
        "enum {{ {0}_FEATURES = {3}, {0}_INPUTS = {4} }};\n\n"
        "void {0}_normalise(const float *raw, size_t docs, float *inputs);\n"
        "double {0}_score(const float *inputs);\n\n",
        name_, needs_libm() ? " Link with -lm." : "", needs_libm() ? "#include <math.h>\n" : "",
        normaliser_.features, model_.shape.inputs);
  }

  template <class T>
  void write_table(std::string_view type, const std::string& table, const T* values, std::int64_t count) {
    add("static const {} {}_{}[{}] = {{", type, name_, table, count);
    for (std::int64_t i = 0; i < count; ++i) {
      text_ += i % 6 == 0 ? "\n  " : " ";
      if constexpr (std::is_same_v<T, float>) {
        add("{:.8e}f,", values[i]);
      } else if constexpr (std::is_same_v<T, double>) {
        add("{:.16e},", values[i]);
      } else {
        add("{},", values[i]);
      }
    }
    add("\n}};\n\n");
  }

  void write_tables() {
    const auto features = normaliser_.features;
    if (!normaliser_.kept.empty())
      write_table("size_t", "kept", normaliser_.kept.data(), normaliser_.columns());
    if (!normaliser_.products.empty()) {
      const auto [first, second] = product_inputs(normaliser_.products);
      write_table("size_t", "first", first.data(), std::ssize(first));
      write_table("size_t", "second", second.data(), std::ssize(second));
    }
    if (is_zscore()) {
      write_table("double", "means", normaliser_.means.data(), features);
      write_table("double", "scales", normaliser_.scales.data(), features);
    }
    for (std::size_t member = 0; member < model_.members.size(); ++member) {
      const float* theta = model_.members[member].data();
      for (std::size_t index = 0; index < layers_.size(); ++index) {
        const NetworkLayer& layer = layers_[index].place;
        write_table("float", weight(member, index), theta + layer.weight, layer.rows * layer.columns);
        if (layer.has_bias()) write_table("float", bias(member, index), theta + layer.bias, layer.rows);
      }
    }
  }

  static std::string weight(std::size_t member, std::size_t index) {
    return fmt::format("weight_{}_{}", member, index);
  }
  static std::string bias(std::size_t member, std::size_t index) {
    return fmt::format("bias_{}_{}", member, index);
  }

  void write_normalise() {
    add("void {0}_normalise(const float *raw, size_t docs, float *inputs) {{\n"
        "  size_t doc, c;\n"
        "  for (c = 0; c < {1}; c++) {{\n"
        "    const size_t f = {2};\n"
        "    float *const column = inputs + c;\n",
        name_, normaliser_.columns(), normaliser_.kept.empty() ? "c" : name_ + "_kept[c]");
    if (normaliser_.scales_queries()) add("    double low, high;\n");
    add("    for (doc = 0; doc < docs; doc++) {{\n"
        "      const {1} x = raw[doc * {0}_FEATURES + f];\n"
        "      column[doc * {0}_INPUTS] = {2};\n"
        "    }}\n",
        name_, is_zscore() ? "double" : "float", normalised_value());
    if (normaliser_.scales_queries()) {
      add("    if (docs == 0) return;\n"
          "    low = high = column[0];\n"
          "    for (doc = 1; doc < docs; doc++) {{\n"
          "      const double x = column[doc * {0}_INPUTS];\n"
          "      if (x < low) low = x;\n"
          "      if (x > high) high = x;\n"
          "    }}\n"
          "    for (doc = 0; doc < docs; doc++) {{\n"
          "      const double x = column[doc * {0}_INPUTS];\n"
          "      column[doc * {0}_INPUTS] = high > low ? (float)((x - low) / (high - low)) : 0.0f;\n"
          "    }}\n",
          name_);
    }
    if (normaliser_.cosines > 0) {
      add("    for (doc = 0; doc < docs; doc++) {{\n"
          "      float *const x = column + doc * {}_INPUTS;\n",
          name_);
      for (std::int64_t k = 1; k <= normaliser_.cosines; ++k)
        add("      x[{}] = (float)cos({:.16e} * *x);\n", k * normaliser_.columns(),
            static_cast<double>(k + 1) * std::numbers::pi);
      add("    }}\n");
    }
    add("  }}\n");
    const auto products = std::ssize(normaliser_.products);
    if (products > 0) {
      add("  for (doc = 0; doc < docs; doc++) {{\n"
          "    float *const x = inputs + doc * {0}_INPUTS;\n"
          "    for (c = 0; c < {1}; c++)\n"
          "      x[{2} + c] = (float)((2.0 * x[{0}_first[c]] - 1.0) * (2.0 * x[{0}_second[c]] - 1.0));\n"
          "  }}\n",
          name_, products, normaliser_.inputs() - products);
    }
    add("}}\n\n");
  }

  std::string normalised_value() const {
    if (!is_zscore()) return "x";
    return fmt::format("(float)(({} - {}_means[f]) * {}_scales[f])",
                       is_log() ? "copysign(log1p(fabs(x)), x)" : "x", name_, name_);
  }

  void write_score() {
    const NetworkShape& shape = model_.shape;
    add("static void {0}_layer(const float *weight, const float *bias, size_t rows, size_t columns, int "
        "relu,\n"
        "    const double *in, double *out) {{\n"
        "  size_t r, k;\n"
        "  for (r = 0; r < rows; r++) {{\n"
        "    double sum = bias ? bias[r] : 0.0;\n"
        "    for (k = 0; k < columns; k++) sum += (double)weight[r * columns + k] * in[k];\n"
        "    out[r] = relu && !(sum > 0.0) ? 0.0 : sum;\n"
        "  }}\n"
        "}}\n\n"
        "double {0}_score(const float *inputs) {{\n"
        "  double x[{0}_INPUTS], a[{1}], b[{1}], {2}sum = 0.0;\n"
        "  size_t k;\n"
        "  for (k = 0; k < {0}_INPUTS; k++) x[k] = inputs[k];\n",
        name_, shape.width, has_residual_blocks(model_) ? fmt::format("c[{}], ", shape.width) : "");
    for (std::size_t member = 0; member < model_.members.size(); ++member) {
      const char* in = "x";
      if (has_residual_blocks(model_)) {
        write_residual(member);
        in = "b";
      }
      for (std::size_t index = 0; index < layers_.size() && !has_residual_blocks(model_); ++index) {
        const char* out = index % 2 == 0 ? "a" : "b";
        write_layer(member, index, index + 1 < layers_.size(), in, out);
        in = out;
      }
      add("  sum += {}[0];\n", in);
    }
    if (layers_.size() == 1) add("  (void)b;\n");
    add("  return {:.16e} * sum;\n"
        "}}\n",
        shape.output_scale / static_cast<double>(model_.members.size()));
  }

  void write_layer(std::size_t member, std::size_t index, bool relu, const char* in, const char* out) {
    const NetworkLayer& layer = layers_[index].place;
    add("  {0}_layer({0}_{1}, {2}, {3}, {4}, {5}, {6}, {7});\n", name_, weight(member, index),
        layer.has_bias() ? name_ + "_" + bias(member, index) : "NULL", layer.rows, layer.columns,
        relu ? 1 : 0, in, out);
  }

  /// Units stay in a; the score is in b.
  void write_residual(std::size_t member) {
    write_layer(member, 0, false, "x", "a");
    for (std::size_t index = 1; index + 1 < layers_.size(); index += 2) {
      write_layer(member, index, true, "a", "b");
      write_layer(member, index + 1, false, "b", "c");
      add("  for (k = 0; k < {}; k++) a[k] += c[k];\n", model_.shape.width);
    }
    write_layer(member, layers_.size() - 1, false, "a", "b");
  }

  const LoadedModel& model_;
  const std::vector<ExportedLayer> layers_;
  const FittedNormaliser& normaliser_;
  const std::string& name_;
  std::string text_;
};

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
      throw_error<InvalidArgument>(
          "A model of {} cannot be written as {}: it scales features within their query, but search "
          "engines score each document alone. Use a model of the normalisation none or zscore.",
          model.is_additive() ? "additive form" : "the normalisation query-minmax", form);
    if (normaliser_.kind == Normalisation::kLog1pZscore)
      throw_error<InvalidArgument>(
          "A model of the normalisation log1p-zscore cannot be written as {}: search engines take no "
          "logarithms of features. Use a model of the normalisation none or zscore.",
          form);
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
  /// Lists the inputs that are not constant.
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

std::string c_source_of(const LoadedModel& model, const std::string& name) {
  return CSource(model, name).write();
}

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
