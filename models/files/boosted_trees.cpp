#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/io/json.h"
#include "core/text/message_text.h"
#include "models/files/external_model.h"
#include "models/files/model_file.h"

namespace olrank {
namespace {

/// Its score of a raw document is the program's raw score (LightGBM's raw_score, XGBoost's output_margin):
/// the sum of a leaf of each tree.
struct BoostedTrees {
  enum class Missing : std::uint8_t { kNone, kZero, kNan };
  /// Documents of at most the threshold go left. A child below 0 is the leaf of number ~child.
  struct Node {
    double threshold = 0.0;
    std::int32_t feature = 0;
    std::int32_t left = 0;
    std::int32_t right = 0;
    Missing missing = Missing::kNan;
    bool missing_goes_left = false;
  };

  double score(const float* doc) const;

  std::int64_t features = 0;
  std::vector<std::string> feature_names;  // none if the program made them up
  std::vector<Node> nodes;
  std::vector<double> leaves;
  std::vector<std::int32_t> roots;  // of the trees, like a child
  double offset = 0.0;
};

/// Reads the trees of one file.
class BoostedTreesReader {
 public:
  explicit BoostedTreesReader(const std::string& origin) : origin_(origin) {}

  BoostedTrees lightgbm(std::string_view text) {
    Block header = next_block(text);
    model_.features = number<std::int64_t>(header, "max_feature_idx") + 1;
    require_features();
    if (number<std::int64_t>(header, "num_tree_per_iteration") != 1)
      fail("It has several scores a document; a ranker has one.");
    const std::vector<std::string_view> names = words(header, "feature_names");
    bool own = std::ssize(names) == model_.features;
    for (std::size_t name = 0; name < names.size(); ++name)
      own = own && names[name] != fmt::format("Column_{}", name);
    if (own) model_.feature_names.assign(names.begin(), names.end());
    const std::size_t trees = words(header, "tree_sizes").size();
    for (Block block = next_block(text); block.contains("Tree"); block = next_block(text)) add_tree(block);
    if (!ended_ || model_.roots.size() != trees)
      fail("It is cut short after {}.", counted(std::ssize(model_.roots), "tree"));
    return std::move(model_);
  }

  BoostedTrees xgboost(std::string_view text) {
    const nlohmann::ordered_json json = try_parse_json(text);
    if (json.is_discarded()) fail("It is no whole JSON text: it may be cut short.");
    try {
      read_learner(json.at("learner"));
    } catch (const nlohmann::ordered_json::exception&) {
      fail("It lacks a part that XGBoost writes, or has it in another form.");
    }
    return std::move(model_);
  }

 private:
  using Missing = BoostedTrees::Missing;
  using Block = std::map<std::string_view, std::string_view>;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) const {
    throw DataError(
        origin_, 0, 0,
        "olrank cannot use this model of trees. " + fmt::format(sentence, std::forward<Args>(args)...));
  }
  void require_features() const {
    constexpr std::int64_t kMost = 10'000'000;
    if (model_.features < 1 || model_.features > kMost)
      fail("It has {} features; 1 to {} are possible.", model_.features, kMost);
  }

  /// The next lines KEY=VALUE up to an empty line.
  Block next_block(std::string_view& text) {
    Block block;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ended_ = ended_ || line == "end of trees";
      if (line.empty() && !block.empty()) break;
      const std::size_t equals = line.find('=');
      if (!line.empty())
        block[line.substr(0, equals)] = equals == std::string_view::npos ? "" : line.substr(equals + 1);
    }
    return block;
  }
  std::vector<std::string_view> words(const Block& block, std::string_view key) const {
    std::vector<std::string_view> found;
    const auto value = block.find(key);
    std::string_view rest = value == block.end() ? std::string_view() : value->second;
    while (!rest.empty()) {
      const std::size_t end = rest.find(' ');
      if (end > 0) found.push_back(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return found;
  }
  template <class T>
  std::vector<T> numbers(const Block& block, std::string_view key, std::int64_t count) const {
    std::vector<T> found;
    for (const std::string_view word : words(block, key)) found.push_back(parsed<T>(word, key));
    if (std::ssize(found) != count)
      fail("Tree {} has {} numbers of {}, where {} belong.", model_.roots.size(), found.size(), key, count);
    return found;
  }
  template <class T>
  T number(const Block& block, std::string_view key) const {
    const auto value = block.find(key);
    return parsed<T>(value == block.end() ? std::string_view() : value->second, key);
  }
  template <class T>
  T parsed(std::string_view word, std::string_view key) const {
    T value{};
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc{} && rest == word.data() + word.size()) return value;
    fail("Its {} has '{}' where a number belongs.", key, word.substr(0, 40));
  }

  /// A tree of LightGBM, whose nodes and leaves have numbers of their own.
  void add_tree(const Block& block) {
    const auto leaves = number<std::int64_t>(block, "num_leaves");
    if (number<std::int64_t>(block, "num_cat") != 0)
      fail("It splits by categories, which olrank does not read: train it on numbers alone.");
    if (const auto linear = block.find("is_linear"); linear != block.end() && linear->second != "0")
      fail("It has linear functions in its leaves, which olrank does not read: train it without them.");
    const auto values = numbers<double>(block, "leaf_value", leaves);
    const std::int64_t splits = leaves - 1;
    const auto features = numbers<std::int32_t>(block, "split_feature", splits);
    const auto thresholds = numbers<double>(block, "threshold", splits);
    const auto types = numbers<std::int32_t>(block, "decision_type", splits);
    const auto left = numbers<std::int32_t>(block, "left_child", splits);
    const auto right = numbers<std::int32_t>(block, "right_child", splits);
    std::vector<BoostedTrees::Node> nodes;
    for (std::int64_t split = 0; split < splits; ++split) {
      const int type = types[split];
      if (type < 0 || type > 11 || type % 2 == 1)
        fail("Tree {} has a decision of type {}, which olrank does not read.", model_.roots.size(), type);
      nodes.push_back({thresholds[split], features[split], left[split], right[split],
                       static_cast<Missing>(type >> 2), (type & 2) != 0});
    }
    add(nodes, splits == 0 ? ~0 : 0, values);
  }

  void read_learner(const nlohmann::ordered_json& learner) {
    const nlohmann::ordered_json& about = learner.at("learner_model_param");
    model_.features = whole(about, "num_feature");
    require_features();
    if (whole(about, "num_class") > 1 || (about.contains("num_target") && whole(about, "num_target") > 1))
      fail("It has several scores a document; a ranker has one.");
    const auto names = learner.value("feature_names", nlohmann::ordered_json::array());
    if (std::ssize(names) == model_.features) model_.feature_names = names;
    const nlohmann::ordered_json& booster = learner.at("gradient_booster");
    const std::string kind = booster.at("name");
    if (kind != "gbtree" && kind != "dart")
      fail("Its booster is '{}'; olrank reads gbtree and dart.", kind.substr(0, 40));
    const nlohmann::ordered_json& trees =
        (kind == "dart" ? booster.at("gbtree") : booster).at("model").at("trees");
    const auto weights = kind == "dart" ? booster.at("weight_drop").get<std::vector<float>>()
                                        : std::vector<float>(trees.size(), 1.0F);
    if (weights.size() != trees.size()) fail("It has {} weights of trees.", weights.size());
    for (const auto& tree : trees) add_tree(tree, weights[model_.roots.size()]);
    read_base_score(about.at("base_score"), learner.at("objective").at("name"));
  }
  std::int64_t whole(const nlohmann::ordered_json& json, const char* key) const {
    return parsed<std::int64_t>(json.at(key).get_ref<const std::string&>(), key);
  }
  /// The score that all documents begin with, which is written as the objective's prediction.
  void read_base_score(const std::string& text, const std::string& objective) {
    std::string_view word = text;
    if (word.starts_with('[') && word.ends_with(']')) word = word.substr(1, word.size() - 2);
    const auto base = double{parsed<float>(word, "base_score")};
    const bool is_share = objective == "binary:logistic" || objective == "reg:logistic";
    const bool is_positive =
        objective == "count:poisson" || objective == "reg:gamma" || objective == "reg:tweedie";
    model_.offset = is_share ? std::log(base / (1.0 - base)) : is_positive ? std::log(base) : base;
    if (!std::isfinite(model_.offset)) fail("Its base_score is {}.", word);
  }
  /// A tree of XGBoost, whose leaves are nodes, too. Values below the condition go left, in float32.
  void add_tree(const nlohmann::ordered_json& tree, float weight) {
    const auto left = tree.at("left_children").get<std::vector<std::int32_t>>();
    const auto right = tree.at("right_children").get<std::vector<std::int32_t>>();
    const auto features = tree.at("split_indices").get<std::vector<std::int32_t>>();
    const auto conditions = tree.at("split_conditions").get<std::vector<float>>();
    const auto& to_left = tree.at("default_left");
    const std::size_t count = left.size();
    if (count == 0 || right.size() != count || features.size() != count || conditions.size() != count ||
        to_left.size() != count)
      fail("Tree {} has arrays of different lengths.", model_.roots.size());
    for (const auto& type : tree.value("split_type", nlohmann::ordered_json::array())) {
      if (type != 0)
        fail("It splits by categories, which olrank does not read: train it on numbers alone.");
    }
    std::vector<BoostedTrees::Node> nodes(count);
    std::vector<double> leaves(count);
    const auto child = [&](std::int32_t node) {
      if (node < 0 || node >= std::ssize(left)) fail("Tree {} has a node {}.", model_.roots.size(), node);
      return left[node] < 0 ? ~node : node;
    };
    for (std::size_t node = 0; node < count; ++node) {
      if (left[node] < 0) {
        leaves[node] = double{weight} * double{conditions[node]};
        continue;
      }
      const float highest = std::nextafter(conditions[node], -std::numeric_limits<float>::infinity());
      const bool missing_left = to_left[node].is_boolean() ? to_left[node].get<bool>() : to_left[node] != 0;
      nodes[node] = {double{highest},    features[node], child(left[node]),
                     child(right[node]), Missing::kNan,  missing_left};
    }
    add(nodes, child(0), leaves);
  }

  /// Adds the nodes that the root leads to. A node that it leads to twice is refused, so that every
  /// document comes to a leaf.
  void add(std::vector<BoostedTrees::Node>& nodes, std::int32_t root, const std::vector<double>& leaves) {
    const std::size_t tree = model_.roots.size();
    const auto first_node = static_cast<std::int32_t>(model_.nodes.size());
    const auto first_leaf = static_cast<std::int32_t>(model_.leaves.size());
    const auto moved = [&](std::int32_t child) {
      return child < 0 ? ~(~child + first_leaf) : child + first_node;
    };
    std::vector<std::int32_t> open = {root};
    std::vector<bool> seen(nodes.size());
    while (!open.empty()) {
      const std::int32_t node = open.back();
      open.pop_back();
      if (node < 0 ? ~node >= std::ssize(leaves) : node >= std::ssize(nodes) || seen[node])
        fail("The nodes of tree {} are damaged.", tree);
      if (node < 0) {
        if (!std::isfinite(leaves[~node])) fail("A leaf of tree {} is not finite.", tree);
        continue;
      }
      seen[node] = true;
      BoostedTrees::Node& of_tree = nodes[node];
      if (of_tree.feature < 0 || of_tree.feature >= model_.features || std::isnan(of_tree.threshold))
        fail("Tree {} splits feature {} of {} at {}.", tree, of_tree.feature, model_.features,
             of_tree.threshold);
      open.insert(open.end(), {of_tree.left, of_tree.right});
      of_tree.left = moved(of_tree.left);
      of_tree.right = moved(of_tree.right);
    }
    model_.roots.push_back(moved(root));
    model_.nodes.insert(model_.nodes.end(), nodes.begin(), nodes.end());
    model_.leaves.insert(model_.leaves.end(), leaves.begin(), leaves.end());
  }

  const std::string& origin_;
  BoostedTrees model_;
  bool ended_ = false;
};

double BoostedTrees::score(const float* doc) const {
  constexpr double kZero = 1e-35F;  // LightGBM takes less for 0
  double sum = offset;
  for (std::int32_t node : roots) {
    while (node >= 0) {
      const Node& split = nodes[node];
      const bool is_nan = std::isnan(doc[split.feature]);
      const double value = is_nan && split.missing != Missing::kNan ? 0.0 : double{doc[split.feature]};
      const bool missing = split.missing == Missing::kZero ? std::abs(value) <= kZero
                                                           : split.missing == Missing::kNan && is_nan;
      node = (missing ? split.missing_goes_left : value <= split.threshold) ? split.left : split.right;
    }
    sum += leaves[~node];
  }
  return sum;
}

}  // namespace

bool is_tree_file(std::string_view bytes) {
  // The first eight bytes of a safetensors file are a number, which has zeros.
  const std::string_view first = bytes.substr(0, 8);
  return (bytes.starts_with("tree\n") || bytes.starts_with("tree\r\n") || bytes.starts_with('{')) &&
         first.find('\0') == std::string_view::npos;
}

ExternalModel read_trees(std::string_view bytes, const std::string& origin) {
  BoostedTreesReader reader(origin);
  const BoostedTrees trees = bytes.starts_with('{') ? reader.xgboost(bytes) : reader.lightgbm(bytes);
  const auto score = [trees](std::span<const float> docs, std::span<double> scores) {
    for (std::size_t doc = 0; doc < scores.size(); ++doc)
      scores[doc] = trees.score(docs.data() + static_cast<std::int64_t>(doc) * trees.features);
  };
  return {"trees of LightGBM or XGBoost", trees.features, trees.feature_names, score};
}

}  // namespace olrank
