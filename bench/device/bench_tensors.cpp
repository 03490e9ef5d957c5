#include "bench/device/bench_tensors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cuda/ops/tangent_kernel.h"

namespace olrank {

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
