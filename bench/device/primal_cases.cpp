#include <cmath>

#include "bench/device/width_query.h"
#include "cuda/ops/inverse_covariance.h"

// The full covariance in the primal form, A⁻¹.
namespace olrank {
namespace {

class PrimalCases {
 public:
  explicit PrimalCases(const DeviceSizes& sizes)
      : sizes_(sizes),
        shape_(shape_of(sizes)),
        docs_(real(sizes.docs)),
        triangle_(0.5 * docs_ * (docs_ + 1.0)),
        p_(real(shape_.parameters())) {}

  std::vector<DeviceCase> all() {
    add_primal();
    return std::move(cases_);
  }

 private:
  struct Primal : Query {
    at::Tensor inverse;
    at::Tensor delta;
    at::Tensor input;
    at::Tensor w;
    at::Tensor gram_work;
    std::shared_ptr<device::ProductPlans> plans = std::make_shared<device::ProductPlans>();
    std::shared_ptr<device::Products> products;

    Primal(const DeviceSizes& of, Stream stream)
        : Query(of, stream),
          delta(empty_tensor(of, at::kInt, {shape().parameters()})),
          input(empty_tensor(of, at::kInt, {shape().parameters()})),
          w(empty_tensor(of, at::kDouble, {of.docs, shape().parameters()})),
          gram_work(empty_tensor(of, at::kDouble, {device::inverse_gram_workspace(shape(), of.docs)})),
          products(std::make_shared<device::Products>(*plans, stream)) {
      const std::int64_t p = shape().parameters();
      const at::Tensor seen = at::randn({p, 4}, options_of(of, at::kDouble)) * (0.1 / std::sqrt(real(p)));
      inverse = at::mm(seen, seen.t());
      inverse.diagonal().add_(1.0 / kLambda);
      device::fill_parameter_table(stream, shape(), table());
      gram();
    }

    device::ParameterTable table() const { return {data<std::int32_t>(delta), data<std::int32_t>(input)}; }
    /// In the stream that this was made for.
    void gram() const {
      device::inverse_covariance_gram(*products, shape(), table(), docs->view(), scale,
                                      data<double>(inverse), data<double>(gram_work), data<double>(w),
                                      data<double>(m));
    }
    at::Tensor gram_in_libtorch() const {
      return libtorch::inverse_gram(shape(), rows(), inverse, scale).m;
    }
  };

  void add_primal() {
    const double square = p_ * p_;
    const double gram_count = 2.0 * square * docs_ + 2.0 * p_ * triangle_;
    const double gram_bytes = kDoubleBytes * square + 4.0 * kDoubleBytes * p_ * docs_;
    const std::vector<std::pair<std::string, std::int64_t>> parameters{{"V", sizes_.docs},
                                                                       {"p", shape_.parameters()}};
    cases_.push_back({.name = "inverse_covariance/inverse_covariance_gram",
                      .parameters = parameters,
                      .operations = gram_count,
                      .bytes = gram_bytes,
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Primal>(sizes, stream);
                        return compared(
                            [=](Stream) { query->gram(); }, [=] { return query->gram_in_libtorch(); },
                            [=](const at::Tensor& other) { return query->gram_disagreement(other); },
                            kGramTolerance);
                      }});
    cases_.push_back({.name = "widths/full-primal",
                      .parameters = parameters,
                      .operations = gram_count,
                      .bytes = gram_bytes,
                      .least_share = kWantedShare,
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Primal>(sizes, stream);
                        return whole_widths(query, [=](Stream) { query->gram(); });
                      }});
    cases_.push_back({.name = "inverse_covariance/update_inverse_covariance",
                      .parameters = {{"k", kRoundPairs}, {"p", shape_.parameters()}},
                      .operations = real(kRoundPairs) * square,
                      .bytes = 1.5 * kDoubleBytes * square,
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) { return update_work(sizes, stream); }});
    cases_.push_back({.name = "inverse_covariance/apply_inverse_covariance",
                      .parameters = {{"p", shape_.parameters()}},
                      .operations = 2.0 * square,
                      .bytes = kDoubleBytes * square,
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Primal>(sizes, stream);
                        const std::int64_t p = query->shape().parameters();
                        const at::Tensor x = at::randn({p}, options_of(sizes, at::kDouble));
                        const at::Tensor y = at::empty_like(x);
                        return compared(
                            [=](Stream on) {
                              device::apply_inverse_covariance(on, p, data<double>(query->inverse),
                                                               data<double>(x), data<double>(y));
                            },
                            [=] { return at::mv(query->inverse, x); },
                            [=](const at::Tensor& other) { return disagreement_of(y, other); }, 1e-10);
                      }});
  }

  /// With M = I, I + ΔMΔᵀ = 3I, so that LibTorch needs no factorisation. Scaled down, so that repeats do
  /// not change the magnitude.
  static DeviceWork update_work(const DeviceSizes& sizes, Stream stream) {
    const auto query = std::make_shared<Primal>(sizes, stream);
    const std::int64_t p = query->shape().parameters();
    constexpr double kSmall = 1e-12;
    query->m.copy_(at::eye(sizes.docs, options_of(sizes, at::kDouble)));
    const at::Tensor scratch =
        empty_tensor(sizes, at::kDouble, {device::inverse_update_workspace(p, kRoundPairs)});
    const at::Tensor other = query->inverse.clone();
    const at::Tensor pairs = query->w.narrow(0, 0, 2 * kRoundPairs).view({kRoundPairs, 2, p});
    const auto update = [=](Stream on, double scale) {
      device::update_inverse_covariance(on, p, sizes.docs, data<double>(query->w), data<double>(query->m),
                                        scale, query->pair_list(), kRoundPairs, data<double>(scratch),
                                        data<double>(query->inverse), query->state());
    };
    const auto update_in_libtorch = [=](double scale) {
      const at::Tensor difference = pairs.select(1, 0) - pairs.select(1, 1);
      other.addmm_(difference.t(), difference, 1.0, -scale / 3.0);
    };
    DeviceWork work = alone([=](Stream on) { update(on, kSmall); });
    work.libtorch = [=] { update_in_libtorch(kSmall); };
    work.disagreement = [=](Stream on) {
      const at::Tensor before = query->inverse.clone();
      update(on, query->scale);
      update_in_libtorch(query->scale);
      query->require_sound();
      return disagreement_of(query->inverse - before, other - before);
    };
    work.tolerance = 1e-9;
    return work;
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  double docs_;
  double triangle_;
  double p_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> primal_cases(const DeviceSizes& sizes) {
  return PrimalCases(sizes).all();
}

}  // namespace olrank
