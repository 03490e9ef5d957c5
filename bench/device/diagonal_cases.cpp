#include "bench/device/width_query.h"
#include "cuda/ops/diagonal_covariance.h"
#include "cuda/ops/theory_alpha.h"

// The diagonal covariance: its single operations, and whole widths from factors to bits.
namespace olrank {
namespace {

class DiagonalCases {
 public:
  explicit DiagonalCases(const DeviceSizes& sizes)
      : sizes_(sizes),
        shape_(shape_of(sizes)),
        docs_(real(sizes.docs)),
        triangle_(0.5 * docs_ * (docs_ + 1.0)),
        p_(real(shape_.parameters())) {}

  std::vector<DeviceCase> all() {
    add_accumulation();
    add_log_det();
    add_widths();
    return std::move(cases_);
  }

 private:
  struct Diagonal : Query {
    at::Tensor diagonal;
    at::Tensor root;
    at::Tensor work;

    Diagonal(const DeviceSizes& of, Stream stream)
        : Query(of, stream),
          diagonal(at::rand({shape().parameters()}, options_of(of, at::kDouble)) + kLambda),
          root((scale / diagonal).sqrt()),
          work(empty_tensor(of, at::kDouble, {device::diagonal_gram_workspace(shape(), of.docs)})) {}

    device::DiagonalState kept() const { return {data<double>(diagonal), data<double>(root)}; }
    void gram(Stream on) const {
      device::diagonal_gram(on, shape(), docs->view(), data<double>(root), data<double>(work),
                            data<double>(m));
    }
    at::Tensor gram_in_libtorch() const { return libtorch::diagonal_gram(shape(), rows(), root); }
  };

  void add_accumulation() {
    cases_.push_back({.name = "diagonal_covariance/add_to_diagonal",
                      .parameters = {{"k", kRoundPairs}, {"p", shape_.parameters()}},
                      .operations = 4.0 * real(kRoundPairs) * p_,
                      .bytes = 3.0 * kDoubleBytes * p_,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Diagonal>(sizes, stream);
                        return alone([=](Stream on) {
                          device::add_to_diagonal(on, query->shape(), query->docs->view(),
                                                  query->pair_list(), kRoundPairs, 1e-6, query->kept());
                        });
                      }});
  }

  void add_log_det() {
    cases_.push_back(
        {.name = "theory_alpha/diagonal_log_det",
         .parameters = {{"p", shape_.parameters()}},
         .operations = 2.0 * p_,
         .bytes = kDoubleBytes * p_,
         .prepare = [sizes = sizes_](Stream stream) {
           const auto query = std::make_shared<Diagonal>(sizes, stream);
           const at::Tensor log_det = empty_tensor(sizes, at::kDouble, {1});
           return compared(
               [=](Stream on) {
                 device::diagonal_log_det(on, query->shape().parameters(), data<double>(query->diagonal),
                                          kLambda, data<double>(log_det));
               },
               [=] { return (query->diagonal / kLambda).log().sum().view({1}); },
               [=](const at::Tensor& other) { return disagreement_of(log_det, other); }, 1e-12);
         }});
  }

  void add_widths() {
    // One triangle, all units active: skipping inactive units is to the kernel's credit.
    const double operations = 2.0 * p_ * triangle_;
    const double bytes = rows_bytes(shape_, docs_) + kDoubleBytes * (p_ + triangle_);
    cases_.push_back({.name = "diagonal_covariance/diagonal_gram",
                      .parameters = {{"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}},
                      .operations = operations,
                      .bytes = bytes,
                      .least_share = kWantedShare,
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Diagonal>(sizes, stream);
                        return compared(
                            [=](Stream on) { query->gram(on); }, [=] { return query->gram_in_libtorch(); },
                            [=](const at::Tensor& other) { return query->gram_disagreement(other); },
                            kGramTolerance);
                      }});
    cases_.push_back({.name = "widths/diagonal",
                      .parameters = {{"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}},
                      .operations = operations,
                      .bytes = bytes,
                      .least_share = kWantedShare,
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Diagonal>(sizes, stream);
                        return whole_widths(query, [=](Stream on) { query->gram(on); });
                      }});
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  double docs_;
  double triangle_;
  double p_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> diagonal_cases(const DeviceSizes& sizes) {
  return DiagonalCases(sizes).all();
}

}  // namespace olrank
