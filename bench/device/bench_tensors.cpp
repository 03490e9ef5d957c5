#include "bench/device/bench_tensors.h"

#include <cmath>
#include <utility>

#include "cuda/ops/tangent_factors.h"

namespace olrank {

at::TensorOptions options_of(const DeviceSizes& sizes, at::ScalarType type) {
  return at::TensorOptions().dtype(type).device(sizes.on_gpu ? at::kCUDA : at::kCPU);
}

at::Tensor empty_tensor(const DeviceSizes& sizes, at::ScalarType type,
                        const std::vector<std::int64_t>& extents) {
  return at::empty(extents, options_of(sizes, type));
}

double disagreement_of(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor a = found.to(at::kDouble);
  const at::Tensor b = expected.to(at::kDouble);
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

DeviceWork alone(std::function<void(Stream)> own) {
  DeviceWork work;
  work.own = std::move(own);
  return work;
}

DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const std::function<double(const at::Tensor&)>& differs, double tolerance) {
  DeviceWork work = alone(own);
  work.libtorch = [form] { form(); };
  work.disagreement = [=](Stream on) {
    own(on);
    return differs(form());
  };
  work.tolerance = tolerance;
  return work;
}

std::shared_ptr<MadeDocs> make_docs(const DeviceSizes& sizes, Stream stream, std::int64_t docs,
                                    std::int64_t members) {
  auto made = std::make_shared<MadeDocs>();
  made->shape = shape_of(sizes);
  made->members = members;
  made->docs = docs;
  const at::TensorOptions floats = options_of(sizes, at::kFloat);
  // Scores some units apart: √m times a sum of m terms of this size.
  made->theta = at::randn({members, made->shape.parameters()}, floats) *
                (1.0 / std::sqrt(real(sizes.width) * std::sqrt(real(sizes.features))));
  made->features = at::rand({docs, sizes.features}, floats);
  made->rows = empty_tensor(sizes, at::kFloat, {members, docs, made->shape.factors()});
  made->scores = empty_tensor(sizes, at::kFloat, {members, docs});
  made->magnitudes = empty_tensor(sizes, at::kFloat, {members, docs});
  device::tangent_factors(made->products(stream), made->stack(), data<float>(made->features), made->view(),
                          made->out());
  return made;
}

}  // namespace olrank
