#include "bench/device/libtorch_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/math/pair_loss.h"

namespace olrank {

std::int64_t parameter_of(const CaseParameters& parameters, std::string_view name) {
  for (const auto& [key, value] : parameters)
    if (key == name) return value;
  return 0;
}

std::string DeviceCase::identity() const {
  std::string text = name;
  for (const auto& [key, value] : parameters) text += fmt::format(" {}={}", key, value);
  return text;
}

at::TensorOptions options_of(const DeviceSizes& sizes, at::ScalarType type) {
  return at::TensorOptions().dtype(type).device(sizes.on_gpu ? at::kCUDA : at::kCPU);
}

double disagreement_of(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor b = expected.to(at::kDouble);
  const at::Tensor a = found.to(at::kDouble).reshape(b.sizes());
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const std::function<double(const at::Tensor&)>& differs, double tolerance) {
  const auto disagreement = [=](Stream on) {
    own(on);
    return differs(form());
  };
  return {.own = own, .libtorch = form, .disagreement = disagreement, .tolerance = tolerance};
}

DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const at::Tensor& result, double tolerance) {
  const std::function<double(const at::Tensor&)> differs = [result](const at::Tensor& expected) {
    return disagreement_of(result, expected);
  };
  return compared(own, form, differs, tolerance);
}

MadeDocs::MadeDocs(const DeviceSizes& sizes, Stream stream, std::int64_t count, std::int64_t networks)
    : shape(ntk_shape(sizes.features, sizes.width, sizes.depth)), members(networks), docs(count) {
  const Operands make{sizes};
  // Scores some units apart: √m times a sum of m terms of this size.
  theta.t = make.randn<float>({members, shape.parameters()}).t *
            (1.0 / std::sqrt(real(sizes.width) * std::sqrt(real(sizes.features))));
  features = make.rand<float>({docs, sizes.features});
  rows = make.empty<float>({members, docs, shape.factors()});
  scores = make.empty<float>({members, docs});
  magnitudes = make.empty<float>({members, docs});
  device::tangent_factors(products(stream), stack(), features, view(), out());
}

Launches::Launches(const DeviceSizes& of)
    : sizes(of),
      shape(ntk_shape(of.features, of.width, of.depth)),
      p(shape.parameters()),
      most_pairs(*std::max_element(of.pairs.begin(), of.pairs.end())) {}

std::vector<DeviceCase> device_cases(const DeviceSizes& sizes) {
  Launches table(sizes);
  add_ranking(table);
  add_covariances(table);
  add_training(table);
  // A training step of a wide network, where products take all the time: ours and LibTorch's, which are
  // those of cuBLAS.
  DeviceSizes wide = sizes;
  wide.width = sizes.wide;
  wide.pairs = {table.most_pairs};
  wide.members = {1};
  Launches of_wide(wide);
  add_training(of_wide);
  for (DeviceCase& one : of_wide.cases) {
    if (one.name != "training/step") continue;
    one.wanted = {};
    table.cases.push_back(std::move(one));
  }
  return std::move(table.cases);
}

}  // namespace olrank

namespace olrank::libtorch {
namespace {

at::Tensor weight_of(const at::Tensor& theta, const NetworkLayer& layer) {
  return theta.narrow(1, layer.weight, layer.rows * layer.columns)
      .view({theta.size(0), layer.rows, layer.columns});
}

/// h_0 to h_{L−1} [members × docs × units], and the scores.
struct Passed {
  std::vector<at::Tensor> hidden;
  at::Tensor scores;
};

Passed pass(const NetworkShape& shape, const at::Tensor& theta, const at::Tensor& features) {
  Passed passed;
  passed.hidden.push_back(
      features.unsqueeze(0).expand({theta.size(0), features.size(0), features.size(1)}));
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    at::Tensor z = at::bmm(passed.hidden.back(), weight_of(theta, layer).transpose(1, 2));
    if (layer.has_bias()) z = z + theta.narrow(1, layer.bias, layer.rows).unsqueeze(1);
    if (l + 1 < shape.depth) {
      passed.hidden.push_back(at::relu(z));
    } else {
      passed.scores = (z * shape.output_scale).squeeze(2);
    }
  }
  return passed;
}

/// δ_1 to δ_L from δ_L [members × docs × 1].
std::vector<at::Tensor> pass_back(const NetworkShape& shape, const at::Tensor& theta, const Passed& passed,
                                  const at::Tensor& last) {
  std::vector<at::Tensor> deltas(shape.depth);
  deltas.back() = last;
  for (std::int64_t l = shape.depth - 2; l >= 0; --l) {
    const auto at = static_cast<std::size_t>(l);
    const at::Tensor weight = weight_of(theta, shape.layer(l + 1));
    const at::Tensor back =
        l + 2 == shape.depth ? deltas[at + 1] * weight : at::bmm(deltas[at + 1], weight);
    deltas[at] = back * passed.hidden[at + 1].gt(0.0F);
  }
  return deltas;
}

/// g(x_i)·g(x_j) from rows in double.
at::Tensor inner_products(const NetworkShape& shape, const at::Tensor& left, const at::Tensor& right) {
  at::Tensor sum;
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const auto products = [&](std::int64_t place, std::int64_t count) {
      return at::mm(left.narrow(1, place, count), right.narrow(1, place, count).t());
    };
    const at::Tensor inputs = products(layer.input, layer.columns);
    const at::Tensor term = products(layer.delta, layer.rows) * (layer.has_bias() ? inputs + 1.0 : inputs);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

/// g of every document, [docs × p], in double.
at::Tensor gradients(const NetworkShape& shape, const at::Tensor& rows) {
  const at::Tensor wide = rows.to(at::kDouble);
  std::vector<at::Tensor> parts;
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const at::Tensor delta = wide.narrow(1, layer.delta, layer.rows);
    const at::Tensor input = wide.narrow(1, layer.input, layer.columns);
    parts.push_back((delta.unsqueeze(2) * input.unsqueeze(1)).flatten(1));
    if (layer.has_bias()) parts.push_back(delta);
  }
  return at::cat(parts, 1);
}

}  // namespace

Factors tangent_factors(const NetworkShape& shape, const at::Tensor& theta, const at::Tensor& features) {
  const Passed passed = pass(shape, theta, features);
  const at::Tensor last =
      at::full({theta.size(0), features.size(0), 1}, shape.output_scale, features.options());
  const std::vector<at::Tensor> deltas = pass_back(shape, theta, passed, last);
  std::vector<at::Tensor> parts;
  for (std::size_t l = 0; l < deltas.size(); ++l) {
    parts.push_back(passed.hidden[l]);
    parts.push_back(deltas[l]);
  }
  return {at::cat(parts, 2), passed.scores};
}

at::Tensor diagonal_gram(const NetworkShape& shape, const at::Tensor& rows, const at::Tensor& root) {
  const at::Tensor g = gradients(shape, rows).mul_(root);
  return at::mm(g, g.t());
}

at::Tensor doc_kernel(const NetworkShape& shape, const at::Tensor& rows, double scale) {
  const at::Tensor wide = rows.to(at::kDouble);
  return inner_products(shape, wide, wide) * scale;
}

at::Tensor pair_doc_kernel(const NetworkShape& shape, const at::Tensor& pairs, const at::Tensor& docs,
                           double scale) {
  const at::Tensor sum = inner_products(shape, pairs.to(at::kDouble), docs.to(at::kDouble));
  const at::Tensor by_pair = sum.view({sum.size(0) / 2, 2, sum.size(1)});
  return (by_pair.select(1, 0) - by_pair.select(1, 1)) * scale;
}

at::Tensor dual_gram(const at::Tensor& kernel, const at::Tensor& s, double lambda) {
  return at::addmm(kernel, s.t(), s, 1.0 / lambda, -1.0 / lambda);
}

at::Tensor inverse_gram(const NetworkShape& shape, const at::Tensor& rows, const at::Tensor& inverse,
                        const at::Tensor& q, double scale) {
  const at::Tensor g = gradients(shape, rows);
  const at::Tensor w = at::addmm(at::mm(g, inverse), at::mm(g, q.t()), q, 1.0, -1.0);
  return at::mm(w, g.t()) * scale;
}

at::Tensor certain_by_width(const at::Tensor& m, const at::Tensor& scores, const at::Tensor& magnitudes,
                            const CertaintyRule& rule) {
  const at::Tensor order = at::argsort(scores, true, 0, true);
  const at::Tensor own = m.diagonal();
  const at::Tensor width_sq = (own.unsqueeze(0) + own.unsqueeze(1) - 2.0 * m)
                                  .clamp_min(0.0)
                                  .index_select(0, order)
                                  .index_select(1, order);
  const at::Tensor placed = scores.index_select(0, order).to(at::kDouble);
  const at::Tensor difference = placed.unsqueeze(1) - placed.unsqueeze(0);
  const at::Tensor clear = 0.5 * at::tanh(0.5 * difference);
  const at::Tensor least = magnitudes.max().to(at::kDouble) * kScoreRounding;
  return clear.gt(rule.alpha * width_sq.sqrt()).logical_and_(difference.gt(least));
}

at::Tensor TrainingStep::gradient(const at::Tensor& theta) const {
  const Passed passed = pass(shape, theta, features);
  const at::Tensor z = passed.scores.index_select(1, first) - passed.scores.index_select(1, second);
  const at::Tensor slopes = weights * at::sigmoid(z) - labels;
  at::Tensor of_docs = at::zeros_like(passed.scores);
  of_docs.index_add_(1, first, slopes);
  of_docs.index_add_(1, second, slopes, -1.0);
  const std::vector<at::Tensor> deltas =
      pass_back(shape, theta, passed, (of_docs * shape.output_scale).unsqueeze(2));
  std::vector<at::Tensor> parts;
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const auto at = static_cast<std::size_t>(l);
    parts.push_back(at::bmm(deltas[at].transpose(1, 2), passed.hidden[at]).flatten(1));
    if (shape.layer(l).has_bias()) parts.push_back(deltas[at].sum(1));
  }
  return at::cat(parts, 1).add_(theta - centre, 2.0 * prior_weight);
}

}  // namespace olrank::libtorch
