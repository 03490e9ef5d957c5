#include "models/files/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/math/normal.h"
#include "core/runtime/execution_context.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "core/version.h"
#include "models/baselines/baselines.h"
#include "models/files/external_model.h"
#include "models/files/model_scorer.h"
#include "models/files/snapshot_file.h"
#include "models/linear/linear_belief.h"
#include "models/modules/module_model.h"
#include "models/neural/ranker_network.h"

namespace olrank {
namespace {

constexpr const char* kStartModel = "start_model";
constexpr const char* kStartWeight = "start.weight";

class Model {
 public:
  Model(const SafetensorsContents& contents, const std::string& origin, ModelCode code)
      : contents_(contents), origin_(origin), code_(code) {}

  LoadedModel read() {
    LoadedModel model;
    model.metadata = contents_.metadata;
    const std::string* members = find_text("members");
    const std::int64_t count = members == nullptr ? 1 : number("members", 1, 1024);
    const auto prefix = [&](std::int64_t member) {
      return members == nullptr ? std::string() : fmt::format("members.{}.", member);
    };
    const std::string& architecture = text("architecture");
    std::int64_t cosines = 0;
    std::vector<InputPair> products;
    if (architecture == "linear") {
      model.settings.network = NetworkForm::kLinear;
      model.shape = linear_shape(columns_of(prefix(0) + "linear.weight"));
    } else if (architecture == "additive") {
      model.settings.network = NetworkForm::kLinear;
      cosines = HigherCosines::kTerms;
      const std::int64_t columns = columns_of(prefix(0) + "linear.weight");
      products = pairs(columns);
      model.shape = linear_shape(columns * (1 + cosines) + std::ssize(products));
    } else if (architecture == "relu") {
      model.settings = network_settings();
      model.shape = shape_of(model.settings, columns_of(prefix(0) + "layers.0.weight"));
    } else if (architecture == "module") {
      read_module(model, count);
    } else if (architecture == kExternalArchitecture) {
      fail("It is of an external ranker, which only the program that brings that ranker can use.");
    } else {
      fail("Its architecture is '{}'; olrank knows 'linear', 'additive', 'relu' and 'module'.",
           architecture);
    }
    if (find_text("output_scale") != nullptr && !model.module) model.shape.output_scale = output_scale();
    model.normaliser = normaliser_for((model.shape.inputs - std::ssize(products)) / (1 + cosines));
    model.normaliser.cosines = cosines;
    model.normaliser.products = std::move(products);
    for (std::int64_t member = 0; member < count; ++member)
      model.members.push_back(theta_of(model, prefix(member)));
    if (model.is_additive() && find_text(kStartModel) != nullptr) read_start(model);
    for (const auto& tensor : contents_.tensors) {
      if (!used_.contains(tensor.name)) fail("Such a model has no tensor '{}'.", tensor.name);
    }
    model.feature_names = feature_names(model.normaliser.features);
    return model;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) const {
    throw DataError(origin_, 0, 0,
                    "olrank cannot use this model file. " +
                        fmt::format(sentence, std::forward<Args>(args)...) + advice());
  }
  /// Where another version wrote the file, which may know what this one does not.
  std::string advice() const {
    const std::string* writer = find_text("producer");
    const std::string here = fmt::format("olrank {}", version());
    if (writer == nullptr || *writer == here) return "";
    return fmt::format(" {} wrote it, and this is {}: use that one, or make the file again with this one.",
                       excerpt(*writer), here);
  }

  const std::string* find_text(std::string_view key) const {
    for (const auto& [known, text] : contents_.metadata) {
      if (known == key) return &text;
    }
    return nullptr;
  }
  const std::string& text(std::string_view key) const {
    if (const std::string* found = find_text(key)) return *found;
    fail("Its metadata has no {}.", key);
  }
  std::int64_t number(std::string_view key, std::int64_t lowest, std::int64_t highest) const {
    const std::string& said = text(key);
    std::int64_t value = 0;
    const auto [rest, error] = std::from_chars(said.data(), said.data() + said.size(), value);
    if (error != std::errc{} || rest != said.data() + said.size() || value < lowest || value > highest)
      fail("Its {} is '{}' instead of a number from {} to {}.", key, said, lowest, highest);
    return value;
  }

  double output_scale() const {
    const std::string& said = text("output_scale");
    double value = 0.0;
    const auto [rest, error] = std::from_chars(said.data(), said.data() + said.size(), value);
    if (error != std::errc{} || rest != said.data() + said.size() || value == 0.0 ||
        !std::isfinite(static_cast<float>(value)))
      fail("Its output_scale is '{}' instead of a finite number other than 0.", said);
    return value;
  }

  /// Reads the inputs whose products an additive model has: [[i, j], …], from 0; none without the text.
  std::vector<InputPair> pairs(std::int64_t columns) const {
    const std::string* text = find_text("products");
    std::vector<InputPair> found;
    if (text == nullptr) return found;
    const auto json = try_parse_json(*text);
    const auto is_input = [&](const auto& number) {
      return number.is_number_unsigned() &&
             number.template get<std::uint64_t>() < static_cast<std::uint64_t>(columns);
    };
    for (const auto& pair : json) {
      if (!pair.is_array() || pair.size() != 2 || !is_input(pair[0]) || !is_input(pair[1])) {
        fail("Its products are '{}' instead of pairs of inputs from 0 to {}.", *text, columns - 1);
      }
      found.push_back({pair[0].template get<std::int32_t>(), pair[1].template get<std::int32_t>()});
    }
    if (!json.is_array() || found.empty()) fail("Its products are '{}' instead of pairs of inputs.", *text);
    return found;
  }

  void read_start(LoadedModel& model) {
    std::vector<float> weight;
    take(kStartWeight, {1, 1}, weight);
    model.start_weight = weight.front();
    const auto file = bytes_of_base64(text(kStartModel));
    if (!file) fail("Its {} is damaged: it is not in base64.", kStartModel);
    model.start = std::make_shared<const ModelScorer>(on_inputs(parse_model(*file, origin_, code_)));
    if (model.start->features() != model.normaliser.columns())
      fail("Its {} takes {}, but it has {}.", kStartModel, counted(model.start->features(), "input"),
           model.normaliser.columns());
  }

  NetworkSettings network_settings() const {
    NetworkSettings settings;
    settings.network = NetworkForm::kMlp;
    settings.width = number("width", 1, 65536);
    settings.depth = number("depth", 2, 16);
    const std::string& parameterisation = text("parameterisation");
    const auto known = value_named<Parameterisation>(parameterisation);
    if (!known) fail("Its parameterisation '{}' is unknown.", parameterisation);
    settings.parameterisation = *known;
    return settings;
  }
  /// The settings of a registered module, or the file of another one.
  NetworkSettings module_settings() const {
    NetworkSettings settings;
    settings.network = NetworkForm::kModule;
    settings.module = text("module");
    if (find_text("module_state") != nullptr)
      fail(
          "Its module changes its own state in forward(), which is refused: train a module that does not.");
    if (is_module_file(settings.module)) {
      if (code_ == ModelCode::kRefuse) {
        throw_error<InvalidArgument>(
            "{} contains the TorchScript module '{}', whose code can read and write your files: if you "
            "trust its source, add --trust-code true, or trust_code=True in Python.",
            origin_, settings.module);
      }
      auto file = bytes_of_base64(text(kTorchScriptKey));
      if (!file) fail("Its {} is damaged: it is not in base64.", kTorchScriptKey);
      settings.module_file = std::make_shared<const std::string>(std::move(*file));
      return settings;
    }
    const std::vector<std::string> names = module_names();
    // A build without modules refuses all of them in one sentence.
    if (!names.empty() && std::find(names.begin(), names.end(), settings.module) == names.end()) {
      fail(
          "Its module '{}' is not registered in this program, which has {}: use the program that brings "
          "it.",
          settings.module, joined(names, " and "));
    }
    settings.width = number("width", 1, 65536);
    settings.depth = number("depth", 2, 16);
    const auto activation = value_named<Activation>(text("activation"));
    if (!activation) fail("Its activation '{}' is unknown.", text("activation"));
    settings.activation = *activation;
    const std::string& biases = text("biases");
    if (biases != "true" && biases != "false") fail("Its biases is '{}', not true or false.", biases);
    settings.parameterisation = biases == "true" ? Parameterisation::kStandard : Parameterisation::kNtk;
    return settings;
  }
  /// A built-in module of that size would not have so few parameters, and making it may take all memory.
  void require_size(const NetworkSettings& settings, std::int64_t inputs, std::int64_t members) const {
    if (!is_built_in_module(settings.module)) return;
    std::int64_t numbers = 0;
    for (const auto& tensor : contents_.tensors) numbers += std::ssize(tensor.values);
    const bool squares =
        settings.depth > 2 || settings.module == "residual" || settings.module == "attention";
    const std::int64_t needed = settings.width * std::max(inputs, squares ? settings.width : 1);
    if (numbers / members < needed) {
      fail("Its tensors have {} numbers, but module '{}' of {} inputs and width {} has more.", numbers,
           settings.module, inputs, settings.width);
    }
  }
  void read_module(LoadedModel& model, std::int64_t members) {
    constexpr std::int64_t kMostInputs = 10'000'000;
    const std::int64_t inputs = number("inputs", 1, kMostInputs);
    model.settings = module_settings();
    require_size(model.settings, inputs, members);
    std::unique_ptr<ModuleModel> module;
    try {
      module = make_module_model(model.settings, inputs);
    } catch (const InvalidArgument& complaint) {
      fail("{}", complaint.what());
    }
    module_tensors_ = module->tensors(std::vector<float>(module->parameters()));
    for (const auto& [key, here] : module_tensors_.architecture) {
      if (key != "fingerprint" && key != "output_scale") continue;
      if (text(key) == here) continue;
      fail(
          "Its {} is '{}', but module '{}' has '{}' here: use the program that knows the module as it was.",
          key, text(key), model.settings.module, here);
    }
    model.module = std::move(module);
    const NetworkSettings& settings = model.settings;
    model.shape = {inputs, settings.width, settings.depth,
                   settings.parameterisation == Parameterisation::kStandard, output_scale_of(settings)};
  }
  NetworkShape shape_of(const NetworkSettings& settings, std::int64_t inputs) const {
    try {
      return network_shape(settings, inputs);
    } catch (const InvalidArgument& complaint) {
      fail("{}", complaint.what());
    }
  }

  FittedNormaliser normaliser_for(std::int64_t inputs) const {
    const std::string* said = find_text("normalisation");
    if (said == nullptr) {
      FittedNormaliser none;
      none.features = inputs;
      return none;
    }
    FittedNormaliser normaliser = parse_normaliser(*said, origin_);
    if (normaliser.features > kMostModelFeatures)
      fail("Its normalisation is for {} features; at most {} are possible.", normaliser.features,
           kMostModelFeatures);
    if (normaliser.inputs() != inputs)
      fail("Its normalisation yields {} inputs, but its first layer takes {}.", normaliser.inputs(),
           inputs);
    return normaliser;
  }

  std::vector<std::string> feature_names(std::int64_t features) const {
    const std::string* said = find_text("feature_names");
    if (said == nullptr) return {};
    std::vector<std::string> names = parse_feature_names(*said);
    if (std::ssize(names) != features) fail("Its feature_names is not a list of {} names.", features);
    return names;
  }

  const SafetensorsContents::Tensor& tensor(const std::string& name) const {
    for (const auto& tensor : contents_.tensors) {
      if (tensor.name == name) return tensor;
    }
    fail("Its tensor '{}' is missing.", name);
  }
  std::int64_t columns_of(const std::string& name) const {
    const auto& found = tensor(name);
    if (found.shape.size() != 2 || found.shape[1] < 1)
      fail("Its tensor '{}' has the shape [{}].", name, fmt::join(found.shape, ", "));
    return found.shape[1];
  }

  void take(const std::string& name, const std::vector<std::int64_t>& shape, std::vector<float>& theta) {
    const auto& found = tensor(name);
    if (found.shape != shape) {
      fail("Its tensor '{}' has the shape [{}] instead of [{}].", name, fmt::join(found.shape, ", "),
           fmt::join(shape, ", "));
    }
    if (!std::all_of(found.values.begin(), found.values.end(), [](float v) { return std::isfinite(v); })) {
      throw DataError(origin_, 0, 0,
                      fmt::format("The model's tensor '{}' contains numbers that are not finite.", name));
    }
    theta.insert(theta.end(), found.values.begin(), found.values.end());
    used_.insert(name);
  }

  std::vector<float> theta_of(const LoadedModel& model, const std::string& prefix) {
    std::vector<float> theta;
    if (model.is_linear()) {
      const FittedNormaliser& normaliser = model.normaliser;
      take(prefix + "linear.weight", {1, normaliser.columns()}, theta);
      if (model.is_additive())
        take(prefix + "cosines.weight", {normaliser.cosines, normaliser.columns()}, theta);
      if (!normaliser.products.empty())
        take(prefix + "products.weight", {1, std::ssize(normaliser.products)}, theta);
      return theta;
    }
    if (model.module) {
      for (const auto& tensor : module_tensors_.tensors) take(prefix + tensor.name, tensor.shape, theta);
      return theta;
    }
    for (std::int64_t index = 0; index < model.shape.depth; ++index) {
      const NetworkLayer layer = model.shape.layer(index);
      take(fmt::format("{}layers.{}.weight", prefix, index), {layer.rows, layer.columns}, theta);
      if (layer.has_bias()) take(fmt::format("{}layers.{}.bias", prefix, index), {layer.rows}, theta);
    }
    return theta;
  }

  const SafetensorsContents& contents_;
  const std::string& origin_;
  ModelCode code_;
  std::set<std::string> used_;
  ModelTensors module_tensors_;  // what a module's file has to hold
};

/// Such a model takes raw values.
LoadedModel model_of(ExternalModel external) {
  LoadedModel model;
  model.shape.inputs = model.normaliser.features = external.features;
  model.feature_names = external.feature_names;
  model.metadata = {{"normalisation", normaliser_text(model.normaliser)}};
  model.external = std::make_shared<const ExternalModel>(std::move(external));
  return model;
}

/// ONNX begins with a version, and a producer, a graph or operators follow; a safetensors file has a brace.
bool is_onnx(std::string_view bytes) {
  return bytes.size() > 8 && bytes[0] == '\x08' && bytes[8] != '{' &&
         std::string_view("\x12\x3a\x42").find(bytes[2]) != std::string_view::npos;
}

/// It stays when the process ends: what it holds may be gone by then.
OnnxReader& onnx_reader() {
  static auto& reader = *new OnnxReader;
  return reader;
}

LoadedModel model_of_onnx(std::string_view bytes, const std::string& origin) {
  if (onnx_reader()) return model_of(onnx_reader()(bytes, origin));
  throw DataError(
      origin, 0, 0,
      "This is an ONNX model, which olrank reads in Python alone: use the Python package, with onnxruntime "
      "installed, or give rankers the score of each document as a further feature.");
}

}  // namespace

void require_own_function(const LoadedModel& model, std::string_view use) {
  if (!model.external && !model.start) return;
  throw_error<InvalidArgument>(
      "{} cannot hold {}: use the model's own file.", use,
      model.external ? model.external->what : "a model that adds to the score of the one it started from");
}

void register_onnx_reader(OnnxReader reader) {
  onnx_reader() = std::move(reader);
}

LoadedModel load_model(const std::filesystem::path& path, ModelCode code) {
  // The file, its tensors and the parameters are in memory at once.
  const std::int64_t max_bytes = available_memory() / 4;
  return parse_model(read_file(path, max_bytes), path.string(), code);
}

LoadedModel parse_model(std::string_view bytes, const std::string& origin, ModelCode code) {
  if (is_onnx(bytes)) return model_of_onnx(bytes, origin);
  if (bytes.starts_with(R"({"format":"olrank-model")") || bytes.starts_with("PK\x03\x04")) {
    throw DataError(origin, 0, 0,
                    "This is JSON or PyTorch's format, which olrank writes for other programs and does not "
                    "read: name the model file that was exported. A TorchScript module of your own is the "
                    "setting module.");
  }
  if (StateReader::is_state(bytes)) return model_of_snapshot(std::string(bytes), origin, code);
  if (is_tree_file(bytes)) return model_of(read_trees(bytes, origin));
  return Model(parse_safetensors(bytes, origin), origin, code).read();
}

void require_model_features(std::int64_t features) {
  if (features <= kMostModelFeatures) return;
  throw_error<InvalidArgument>(
      "The data have {} features, and a model file may have {} at most: renumber or hash the features.",
      features, kMostModelFeatures);
}

std::vector<ModelTensors::Tensor> tensors_of(const LoadedModel& model) {
  std::vector<ModelTensors::Tensor> tensors;
  const bool ensemble = std::any_of(model.metadata.begin(), model.metadata.end(),
                                    [](const auto& entry) { return entry.first == "members"; });
  for (std::size_t member = 0; member < model.members.size(); ++member) {
    const std::vector<float>& theta = model.members[member];
    ModelTensors of_member = model.module          ? model.module->tensors(theta)
                             : model.is_additive() ? additive_tensors(theta, model.normaliser.products)
                             : model.is_linear()   ? LinearModel(model.shape.inputs).tensors(theta)
                                                   : network_tensors(model.settings, model.shape, theta);
    for (ModelTensors::Tensor& tensor : of_member.tensors) {
      if (ensemble) tensor.name = fmt::format("members.{}.{}", member, tensor.name);
      tensors.push_back(std::move(tensor));
    }
  }
  if (model.start) tensors.push_back({kStartWeight, {1, 1}, {model.start_weight}});
  return tensors;
}

ModelTensors additive_tensors(std::span<const float> theta, std::span<const InputPair> products) {
  constexpr std::int64_t kTerms = HigherCosines::kTerms;
  const std::int64_t columns = (std::ssize(theta) - std::ssize(products)) / (1 + kTerms);
  const auto cosines = theta.begin() + columns;
  const auto of_products = theta.end() - std::ssize(products);
  ModelTensors model{{{"linear.weight", {1, columns}, {theta.begin(), cosines}},
                      {"cosines.weight", {kTerms, columns}, {cosines, of_products}}},
                     {{"architecture", "additive"}}};
  if (products.empty()) return model;
  model.tensors.push_back({"products.weight", {1, std::ssize(products)}, {of_products, theta.end()}});
  model.architecture.emplace_back("products", pairs_text(products));
  return model;
}

void add_start(std::string_view file, float weight, ModelTensors& model) {
  model.tensors.push_back({kStartWeight, {1, 1}, {weight}});
  model.architecture.emplace_back(kStartModel, base64_of(file));
}

std::string pairs_text(std::span<const InputPair> pairs) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const InputPair pair : pairs) json.push_back({pair.first, pair.second});
  return json.dump();
}

}  // namespace olrank
