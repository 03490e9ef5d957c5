#include "bench/device/bench_tensors.h"
#include "bench/device/libtorch_forms.h"
#include "cuda/ops/persistent_training.h"

// A whole training in one kernel, on a history of n pairs of 2n distinct documents; "training/step" is one
// of its steps by several kernels.
namespace olrank {
namespace {

constexpr std::int64_t kStepsOfTraining = 20;

struct OneKernel {
  DeviceSizes sizes;
  std::int64_t n;
  std::int64_t members;
  std::shared_ptr<MadeDocs> docs;
  at::Tensor terms, offsets, ends, incidence_work;
  at::Tensor centre, step, gradient, losses;
  at::Tensor scores, partial, gates, slopes, loss_sums;

  OneKernel(const DeviceSizes& of, Stream stream, std::int64_t pairs, std::int64_t count)
      : sizes(of),
        n(pairs),
        members(count),
        docs(make_docs(of, stream, 2 * pairs, count)),
        offsets(empty_tensor(of, at::kInt, {docs->docs + 1})),
        ends(empty_tensor(of, at::kInt, {2 * n})),
        incidence_work(empty_tensor(of, at::kInt, {device::incidence_workspace(docs->docs, n)})),
        centre(docs->theta * 0.5),
        // So small that θ does not change over any number of steps.
        step(at::full({count}, 1e-15, options_of(of, at::kDouble))),
        gradient(empty_tensor(of, at::kDouble, {count, docs->shape.parameters()})),
        losses(empty_tensor(of, at::kDouble, {2 * count})) {
    std::vector<PairTerm> made;
    made.reserve(n);
    for (std::int32_t s = 0; s < n; ++s) made.push_back({2 * s, 2 * s + 1, 1.0, s % 2 == 0 ? 1.0 : 0.0});
    terms = uploaded(of, made);
    device::find_incidence(stream, data<PairTerm>(terms), n, docs->docs, data<std::int32_t>(incidence_work),
                           {data<std::int32_t>(offsets), data<std::int32_t>(ends)});
    const device::PersistentSizes needed = device::persistent_sizes(docs->shape, count, docs->docs, n);
    scores = empty_tensor(of, at::kFloat, {needed.scores});
    partial = empty_tensor(of, at::kFloat, {needed.partial});
    gates = empty_tensor(of, at::kByte, {needed.gates});
    slopes = empty_tensor(of, at::kDouble, {needed.slopes});
    loss_sums = empty_tensor(of, at::kDouble, {needed.losses});
  }

  double prior_weight() const { return 0.5 * real(sizes.width) * 10.0; }

  device::PersistentTraining training(std::int64_t steps) const {
    device::PersistentTraining made;
    made.stack = docs->stack();
    made.history = {data<float>(docs->features),
                    docs->docs,
                    data<PairTerm>(terms),
                    n,
                    {data<std::int32_t>(offsets), data<std::int32_t>(ends)}};
    made.objective = {1.0, prior_weight(), data<float>(centre)};
    made.steps = steps;
    made.step = data<double>(step);
    made.workspace = {data<float>(scores), data<float>(partial), data<std::uint8_t>(gates),
                      data<double>(slopes), data<double>(loss_sums)};
    made.theta = data<float>(docs->theta);
    made.began = data<double>(losses);
    made.ended = made.began + members;
    return made;
  }
  /// The gradient of a first step.
  at::Tensor first_gradient(Stream on) const {
    device::PersistentTraining pass = training(1);
    pass.gradient = data<double>(gradient);
    device::train_persistently(on, pass);
    return gradient;
  }
  libtorch::TrainingStep in_libtorch() const {
    const at::Tensor even = at::arange(0, 2 * n, 2, options_of(sizes, at::kLong));
    const at::TensorOptions floats = options_of(sizes, at::kFloat);
    return {docs->shape,
            {docs->features, even, even + 1, at::ones({n}, floats),
             (1 - at::arange(n, options_of(sizes, at::kLong)).remainder(2)).to(at::kFloat), centre,
             prior_weight()}};
  }
};

DeviceWork one_kernel_work(const DeviceSizes& sizes, Stream stream, std::int64_t n, std::int64_t members) {
  const auto kept = std::make_shared<OneKernel>(sizes, stream, n, members);
  const libtorch::TrainingStep other = kept->in_libtorch();
  const at::Tensor theta = kept->docs->theta.clone();
  DeviceWork work =
      alone([=](Stream on) { device::train_persistently(on, kept->training(kStepsOfTraining)); });
  work.libtorch = [=] {
    for (std::int64_t number = 0; number < kStepsOfTraining; ++number) other.take(theta, 1e-15);
  };
  work.disagreement = [=](Stream on) {
    return disagreement_of(kept->first_gradient(on), other.gradient(theta));
  };
  work.tolerance = 1e-4;  // sums in float32
  return work;
}

}  // namespace

std::vector<DeviceCase> persistent_cases(const DeviceSizes& sizes) {
  std::vector<DeviceCase> cases;
  const std::int64_t p = shape_of(sizes).parameters();
  for (const std::int64_t n : sizes.pairs) {
    for (const std::int64_t members : sizes.members) {
      if (!device::trains_persistently(shape_of(sizes), members)) continue;
      // A pass forward and one back a step, and one forward for the loss at the end; documents are read
      // once.
      const double pass = 2.0 * real(members * 2 * n) * real(p);
      cases.push_back({.name = "persistent_training/train_persistently",
                       .parameters = {{"n", n},
                                      {"N", members},
                                      {"J", kStepsOfTraining},
                                      {"m", sizes.width},
                                      {"d", sizes.features}},
                       .operations = (2.0 * real(kStepsOfTraining) + 1.0) * pass,
                       .bytes = kFloatBytes * (real(2 * n * sizes.features) + 2.0 * real(members * p)),
                       .arithmetic = Arithmetic::kFloat,
                       .least_ratio = kWantedTrainingRatio,
                       .prepare = [sizes, n, members](Stream stream) {
                         return one_kernel_work(sizes, stream, n, members);
                       }});
    }
  }
  return cases;
}

}  // namespace olrank
