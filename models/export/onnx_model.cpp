#include <fmt/format.h>

#include <initializer_list>
#include <numbers>
#include <span>

#include "core/io/containers.h"
#include "core/version.h"
#include "models/export/export_format.h"

namespace olrank {
namespace {

// Numbers of fields and types are those of onnx.proto, version 1.8 (IR 7, operators 13).
enum ElementType : int { kFloatType = 1, kInt64Type = 7, kDoubleType = 11 };

ProtobufMessage shaped_value(const std::string& name, ElementType type, const char* rows,
                             std::int64_t columns) {
  ProtobufMessage shape;
  ProtobufMessage any_number;
  any_number.put_text(2, rows);
  shape.put_message(1, any_number);
  if (columns > 0) {
    ProtobufMessage dimension;
    dimension.put_number(1, columns);
    shape.put_message(1, dimension);
  }
  ProtobufMessage tensor;
  tensor.put_number(1, type);
  tensor.put_message(2, shape);
  ProtobufMessage any_type;
  any_type.put_message(1, tensor);
  ProtobufMessage value;
  value.put_text(1, name);
  value.put_message(2, any_type);
  return value;
}

ProtobufMessage attribute(const char* name, std::int64_t value) {
  ProtobufMessage message;
  message.put_text(1, name);
  message.put_number(3, value);
  message.put_number(20, 2);  // INT
  return message;
}

ProtobufMessage attribute(const char* name, std::span<const std::int64_t> values) {
  ProtobufMessage message;
  message.put_text(1, name);
  for (const std::int64_t value : values) message.put_number(8, value);
  message.put_number(20, 7);  // INTS
  return message;
}

/// A graph that grows node by node; each call returns the name of the node's result.
class Graph {
 public:
  std::string add(const std::string& op, std::initializer_list<std::string> inputs,
                  std::initializer_list<ProtobufMessage> attributes = {}) {
    return add(op, std::span<const std::string>(inputs.begin(), inputs.size()), attributes);
  }
  std::string add(const std::string& op, std::span<const std::string> inputs,
                  std::initializer_list<ProtobufMessage> attributes = {}, std::string output = {}) {
    if (output.empty()) output = fmt::format("v{}", ++nodes_);
    ProtobufMessage node;
    for (const std::string& input : inputs) node.put_text(1, input);
    node.put_text(2, output);
    node.put_text(4, op);
    for (const ProtobufMessage& one : attributes) node.put_message(5, one);
    graph_.put_message(1, node);
    return output;
  }

  template <class T>
  std::string constant(const std::string& name, ElementType type, std::span<const T> values,
                       std::initializer_list<std::int64_t> shape) {
    ProtobufMessage tensor;
    for (const std::int64_t extent : shape) tensor.put_number(1, extent);
    tensor.put_number(2, type);
    tensor.put_text(8, name);
    tensor.put_text(9, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    graph_.put_message(5, tensor);
    return name;
  }
  std::string number(const std::string& name, double value) {
    return constant(name, kDoubleType, std::span<const double>(&value, 1), {1});
  }
  std::string cast(const std::string& value, ElementType type) {
    return add("Cast", {value}, {attribute("to", type)});
  }

  ProtobufMessage finish(std::int64_t features) {
    graph_.put_text(2, "olrank");
    graph_.put_message(11, shaped_value("docs", kFloatType, "docs_of_query", features));
    graph_.put_message(12, shaped_value("scores", kDoubleType, "docs_of_query", 0));
    return std::move(graph_);
  }

 private:
  ProtobufMessage graph_;
  int nodes_ = 0;
};

/// (x − low) / range over the rows, which are one query's documents; a constant column becomes 0.
std::string query_minmax(Graph& graph, const std::string& docs) {
  constexpr std::int64_t kRows = 0;
  const auto axes = attribute("axes", std::span<const std::int64_t>(&kRows, 1));
  const std::string low = graph.add("ReduceMin", {docs}, {axes, attribute("keepdims", 1)});
  const std::string high = graph.add("ReduceMax", {docs}, {axes, attribute("keepdims", 1)});
  const std::string range = graph.add("Sub", {high, low});
  const std::string varies = graph.add("Greater", {range, graph.number("no_range", 0.0)});
  const std::string divisor = graph.add("Where", {varies, range, graph.number("unit_range", 1.0)});
  return graph.add("Div", {graph.add("Sub", {docs, low}), divisor});
}

/// log(1 + |x|) with the sign of x. The factor |x| / ((1 + |x|) − 1) restores what 1 + |x| rounds away,
/// because ONNX has no log1p.
std::string signed_log(Graph& graph, const std::string& docs) {
  const std::string one = graph.number("one", 1.0);
  const std::string zero = graph.number("zero", 0.0);
  const std::string size = graph.add("Abs", {docs});
  const std::string sum = graph.add("Add", {one, size});
  const std::string kept = graph.add("Sub", {sum, one});
  const std::string lost = graph.add("Equal", {kept, zero});
  const std::string divisor = graph.add("Where", {lost, one, kept});
  const std::string log = graph.add("Div", {graph.add("Mul", {graph.add("Log", {sum}), size}), divisor});
  return graph.add("Mul", {graph.add("Sign", {docs}), graph.add("Where", {lost, size, log})});
}

/// 2x − 1 of some inputs.
std::string centred(Graph& graph, const std::string& docs, const std::string& name,
                    const std::vector<std::int64_t>& inputs) {
  const std::string numbers = graph.constant(name, kInt64Type, std::span(inputs), {std::ssize(inputs)});
  const std::string x = graph.add("Gather", {docs, numbers}, {attribute("axis", 1)});
  const std::string twice = graph.add("Mul", {x, graph.number("twice_" + name, 2.0)});
  return graph.add("Sub", {twice, graph.number("middle_" + name, 1.0)});
}

/// Appends cos(kπx) as sin(½π − kπx), because ONNX Runtime once had no cosine in double, and products.
std::string with_terms(Graph& graph, const std::string& docs, std::int64_t cosines,
                       std::span<const InputPair> products) {
  const std::string quarter = graph.number("quarter_turn", 0.5 * std::numbers::pi);
  std::vector<std::string> inputs = {docs};
  for (std::int64_t k = 2; k < 2 + cosines; ++k) {
    const double factor = static_cast<double>(k) * std::numbers::pi;
    const std::string turn = graph.add("Mul", {docs, graph.number(fmt::format("turn_{}", k), factor)});
    inputs.push_back(graph.add("Sin", {graph.add("Sub", {quarter, turn})}));
  }
  if (!products.empty()) {
    const auto [first, second] = product_inputs(products);
    inputs.push_back(
        graph.add("Mul", {centred(graph, docs, "first", first), centred(graph, docs, "second", second)}));
  }
  return graph.add("Concat", inputs, {attribute("axis", 1)});
}

std::string rounded(Graph& graph, const std::string& docs) {
  return graph.cast(graph.cast(docs, kFloatType), kDoubleType);
}

/// Inputs of the network in double, rounded to floats on the way as the program does.
std::string normalised(Graph& graph, const FittedNormaliser& normaliser) {
  std::string docs = "docs";
  if (!normaliser.kept.empty()) {
    const std::string kept =
        graph.constant("kept", kInt64Type, std::span(normaliser.kept), {std::ssize(normaliser.kept)});
    docs = graph.add("Gather", {docs, kept}, {attribute("axis", 1)});
  }
  docs = graph.cast(docs, kDoubleType);
  const bool is_log = normaliser.kind == Normalisation::kLog1pZscore;
  if (is_log || normaliser.kind == Normalisation::kZscore) {
    if (is_log) docs = signed_log(graph, docs);
    const std::vector<double> means = of_columns(normaliser, normaliser.means);
    const std::vector<double> scales = of_columns(normaliser, normaliser.scales);
    const std::int64_t columns = normaliser.columns();
    docs = graph.add("Sub", {docs, graph.constant("means", kDoubleType, std::span(means), {columns})});
    docs = graph.add("Mul", {docs, graph.constant("scales", kDoubleType, std::span(scales), {columns})});
    docs = rounded(graph, docs);
  }
  if (normaliser.scales_queries()) docs = rounded(graph, query_minmax(graph, docs));
  if (normaliser.cosines > 0)
    docs = rounded(graph, with_terms(graph, docs, normaliser.cosines, normaliser.products));
  return docs;
}

/// f(x) [docs × 1] of one member.
class MemberGraph {
 public:
  MemberGraph(Graph& graph, const std::vector<float>& theta, const std::string& prefix)
      : graph_(graph), theta_(theta.begin(), theta.end()), prefix_(prefix) {}

  std::string network(std::span<const ExportedLayer> layers, std::string units) {
    for (std::size_t index = 0; index < layers.size(); ++index) {
      units = affine(layers[index], units);
      if (index + 1 < layers.size()) units = graph_.add("Relu", {units});
    }
    return units;
  }
  std::string residual(std::span<const ExportedLayer> layers, std::string units) {
    units = affine(layers.front(), units);
    for (std::size_t index = 1; index + 1 < layers.size(); index += 2) {
      const std::string inner = graph_.add("Relu", {affine(layers[index], units)});
      units = graph_.add("Add", {units, affine(layers[index + 1], inner)});
    }
    return affine(layers.back(), units);
  }

 private:
  std::string affine(const ExportedLayer& layer, const std::string& units) {
    const NetworkLayer& place = layer.place;
    const auto values = std::span<const double>(theta_);
    std::vector<std::string> inputs = {units};
    inputs.push_back(graph_.constant(fmt::format("{}{}.weight", prefix_, layer.name), kDoubleType,
                                     values.subspan(place.weight, place.rows * place.columns),
                                     {place.rows, place.columns}));
    if (place.has_bias()) {
      inputs.push_back(graph_.constant(fmt::format("{}{}.bias", prefix_, layer.name), kDoubleType,
                                       values.subspan(place.bias, place.rows), {place.rows}));
    }
    return graph_.add("Gemm", inputs, {attribute("transB", 1)});
  }

  Graph& graph_;
  std::vector<double> theta_;
  const std::string& prefix_;
};

}  // namespace

std::string onnx_of(const LoadedModel& model) {
  Graph graph;
  const std::string inputs = normalised(graph, model.normaliser);
  const std::vector<ExportedLayer> layers = exported_layers(model);
  std::vector<std::string> outputs;
  for (std::size_t member = 0; member < model.members.size(); ++member) {
    const std::string prefix = model.members.size() == 1 ? "" : fmt::format("members.{}.", member);
    MemberGraph of_member(graph, model.members[member], prefix);
    outputs.push_back(has_residual_blocks(model) ? of_member.residual(layers, inputs)
                                                 : of_member.network(layers, inputs));
  }
  std::string sum = outputs.size() == 1 ? outputs.front() : graph.add("Sum", outputs);
  const double factor = model.shape.output_scale / static_cast<double>(outputs.size());
  if (factor != 1.0) sum = graph.add("Mul", {sum, graph.number("output_scale", factor)});
  constexpr std::int64_t kColumns = 1;
  const std::string axes =
      graph.constant("columns", kInt64Type, std::span<const std::int64_t>(&kColumns, 1), {1});
  graph.add("Identity", std::vector{graph.add("Squeeze", {sum, axes})}, {}, "scores");

  ProtobufMessage operators;
  operators.put_text(1, "");
  operators.put_number(2, 13);
  ProtobufMessage file;
  file.put_number(1, 7);
  file.put_text(2, "olrank");
  file.put_text(3, version());
  file.put_message(7, graph.finish(model.normaliser.features));
  file.put_message(8, operators);
  for (const auto& [key, text] : complete_metadata(model)) {
    ProtobufMessage entry;
    entry.put_text(1, key);
    entry.put_text(2, text);
    file.put_message(14, entry);
  }
  return file.bytes();
}

}  // namespace olrank
