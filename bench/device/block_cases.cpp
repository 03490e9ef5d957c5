#include <cmath>

#include "bench/device/width_query.h"
#include "cuda/ops/block_covariance.h"

// The covariance by units: its single operations, and whole widths from factors to bits.
namespace olrank {
namespace {

class BlockCases {
 public:
  explicit BlockCases(const DeviceSizes& sizes)
      : sizes_(sizes),
        blocks_(shape_of(sizes), 0),
        docs_(real(sizes.docs)),
        triangle_(0.5 * docs_ * (docs_ + 1.0)),
        p_(real(blocks_.parameters)),
        numbers_(real(blocks_.numbers)) {}

  std::vector<DeviceCase> all() {
    add_widths();
    add_update();
    add_checks();
    return std::move(cases_);
  }

 private:
  struct Blocks : Query {
    device::BlockTable blocks;
    at::Tensor roots;
    at::Tensor w;
    at::Tensor gram_work;
    at::Tensor probes;  // directions, then products

    Blocks(const DeviceSizes& of, Stream stream)
        : Query(of, stream),
          blocks(shape(), 0),
          roots(at::randn({blocks.numbers}, options_of(of, at::kDouble)) * 0.01),
          w(empty_tensor(of, at::kDouble, {of.docs * blocks.parameters})),
          gram_work(empty_tensor(of, at::kDouble, {device::block_gram_workspace(blocks, of.docs)})),
          probes(at::rand({2, kProbes, blocks.parameters}, options_of(of, at::kDouble))),
          energies_(empty_tensor(of, at::kDouble, {kProbes, blocks.count()})) {
      device::block_rows(stream, blocks, docs->view(), data<double>(roots), data<double>(w));
    }

    device::BlockProbes kept_probes() const {
      return {kProbes, data<double>(probes), data<double>(probes) + kProbes * blocks.parameters,
              data<double>(energies_)};
    }
    void find_rows(Stream on) const {
      device::block_rows(on, blocks, docs->view(), data<double>(roots), data<double>(w));
    }
    void gram(Stream on) const {
      find_rows(on);
      gram_of_rows(on);
    }
    void gram_of_rows(Stream on) const {
      device::block_gram(on, blocks, docs->view(), data<double>(w), scale, data<double>(gram_work),
                         data<double>(m));
    }
    at::Tensor rows_in_libtorch() const { return libtorch::block_rows(shape(), rows(), roots); }
    at::Tensor gram_in_libtorch() const {
      return libtorch::block_gram(shape(), rows_in_libtorch(), sizes.docs, scale);
    }

   private:
    at::Tensor energies_;
  };
  static constexpr std::int64_t kProbes = 2;

  void add_widths() {
    // All units active: skipping inactive ones is to the kernels' credit.
    const double of_rows = 2.0 * docs_ * numbers_;
    const double of_gram = 2.0 * p_ * triangle_;
    const double row_bytes = rows_bytes(shape_of(sizes_), docs_) + kDoubleBytes * numbers_;
    cases_.push_back({.name = "block_covariance/block_rows",
                      .parameters = parameters(),
                      .operations = of_rows,
                      .bytes = row_bytes + kDoubleBytes * docs_ * p_,
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Blocks>(sizes, stream);
                        return compared(
                            [=](Stream on) { query->find_rows(on); },
                            [=] { return query->rows_in_libtorch(); },
                            [=](const at::Tensor& other) { return disagreement_of(query->w, other); },
                            kGramTolerance);
                      }});
    cases_.push_back({.name = "block_covariance/block_gram",
                      .parameters = parameters(),
                      .operations = of_gram,
                      .bytes = kDoubleBytes * (docs_ * p_ + triangle_),
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Blocks>(sizes, stream);
                        return compared(
                            [=](Stream on) { query->gram_of_rows(on); },
                            [=] { return query->gram_in_libtorch(); },
                            [=](const at::Tensor& other) { return query->gram_disagreement(other); },
                            kGramTolerance);
                      }});
    cases_.push_back({.name = "widths/unit-blocks",
                      .parameters = parameters(),
                      .operations = of_rows + of_gram,
                      .bytes = row_bytes + kDoubleBytes * triangle_,
                      .least_share = kWantedShare,
                      .least_ratio = kWantedWidthRatio,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Blocks>(sizes, stream);
                        return whole_widths(query, [=](Stream on) { query->gram(on); });
                      }});
  }

  /// With so small a scale that repeats do not change the magnitude.
  void add_update() {
    const double k = real(kRoundPairs);
    cases_.push_back({.name = "block_covariance/update_block_roots",
                      .parameters = {{"k", kRoundPairs}, {"m", sizes_.width}, {"d", sizes_.features}},
                      .operations = 4.0 * k * numbers_,
                      .bytes = 2.0 * kDoubleBytes * numbers_,
                      .least_share = kWantedShare,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Blocks>(sizes, stream);
                        const at::Tensor work = empty_tensor(
                            sizes, at::kDouble,
                            {device::update_block_roots_workspace(query->blocks, kRoundPairs)});
                        return alone([=](Stream on) {
                          device::update_block_roots(on, query->blocks, query->docs->view(),
                                                     data<double>(query->w), query->pair_list(),
                                                     kRoundPairs, 1e-12, data<double>(work),
                                                     data<double>(query->roots), query->kept_probes(),
                                                     query->state());
                        });
                      }});
  }

  void add_checks() {
    cases_.push_back(
        {.name = "block_covariance/block_energies",
         .parameters = {{"m", sizes_.width}, {"d", sizes_.features}},
         .operations = 2.0 * kProbes * numbers_,
         .bytes = kDoubleBytes * numbers_,
         .prepare = [sizes = sizes_](Stream stream) {
           const auto query = std::make_shared<Blocks>(sizes, stream);
           const at::Tensor found = empty_tensor(sizes, at::kDouble, {kProbes, query->blocks.count()});
           return alone([=](Stream on) {
             device::block_energies(on, query->blocks, data<double>(query->roots), query->kept_probes(),
                                    data<double>(found));
           });
         }});
    cases_.push_back({.name = "block_covariance/reset_block_roots",
                      .parameters = {{"m", sizes_.width}, {"d", sizes_.features}},
                      .operations = 0.0,
                      .bytes = kDoubleBytes * numbers_,
                      .prepare = [sizes = sizes_](Stream stream) {
                        const auto query = std::make_shared<Blocks>(sizes, stream);
                        return alone([=](Stream on) {
                          device::reset_block_roots(on, query->blocks, 0.1, data<double>(query->roots));
                        });
                      }});
  }

  std::vector<std::pair<std::string, std::int64_t>> parameters() const {
    return {{"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}};
  }

  DeviceSizes sizes_;
  device::BlockTable blocks_;
  double docs_;
  double triangle_;
  double p_;
  double numbers_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> block_cases(const DeviceSizes& sizes) {
  return BlockCases(sizes).all();
}

}  // namespace olrank
