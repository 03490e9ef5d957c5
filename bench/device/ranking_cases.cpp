#include <algorithm>

#include "bench/device/bench_tensors.h"
#include "bench/device/libtorch_forms.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/list_batch.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/query_inputs.h"
#include "cuda/ops/score_order.h"
#include "cuda/ops/tangent_factors.h"

// From features to factors, scores and orders.
namespace olrank {
namespace {

class RankingCases {
 public:
  explicit RankingCases(const DeviceSizes& sizes) : sizes_(sizes), shape_(shape_of(sizes)) {}

  std::vector<DeviceCase> all() {
    add_query_inputs();
    for (const std::int64_t members : sizes_.members) add_tangent_factors(members);
    add_gather();
    add_order(1);
    add_order(sizes_.test_queries);
    add_certain_by_width();
    const std::int64_t most = *std::max_element(sizes_.members.begin(), sizes_.members.end());
    add_mean(most);
    add_vote(most);
    add_list_losses();
    add_list_batch();
    return std::move(cases_);
  }

 private:
  /// ListNet, three exponentials a document, on as many lists as a test part has, of one length for
  /// LibTorch.
  void add_list_losses() {
    const std::int64_t docs = sizes_.test_queries * sizes_.docs;
    cases_.push_back(
        {.name = "list_loss/list_losses",
         .parameters = {{"queries", sizes_.test_queries}, {"V", sizes_.docs}},
         .operations = 100.0 * real(docs),
         .bytes = (kFloatBytes + 1.0 + kDoubleBytes) * real(docs),
         .arithmetic = Arithmetic::kDouble,
         .prepare = [sizes = sizes_, docs](Stream) {
           std::vector<std::int64_t> ends;
           std::vector<std::uint8_t> grades;
           for (std::int64_t query = 0; query < sizes.test_queries; ++query) {
             ends.push_back((query + 1) * sizes.docs);
           }
           for (std::int64_t doc = 0; doc < docs; ++doc) {
             grades.push_back(static_cast<std::uint8_t>(doc * 7 % 5));
           }
           const at::Tensor list_ends = uploaded(sizes, ends);
           const at::Tensor of_docs = uploaded(sizes, grades);
           const at::Tensor scores = at::randn({docs}, options_of(sizes, at::kFloat));
           const at::Tensor work = empty_tensor(sizes, at::kDouble, {docs});
           const at::Tensor losses = empty_tensor(sizes, at::kDouble, {sizes.test_queries});
           const at::Tensor slopes = empty_tensor(sizes, at::kDouble, {docs});
           const auto own = [=](Stream on) {
             device::list_losses(on, {},
                                 {sizes.test_queries, docs, data<std::int64_t>(list_ends),
                                  data<std::uint8_t>(of_docs), nullptr},
                                 data<float>(scores), data<double>(work), data<double>(losses),
                                 data<double>(slopes));
           };
           const auto softmax = [sizes](const at::Tensor& values) {
             return at::softmax(values.to(at::kDouble).view({sizes.test_queries, sizes.docs}), 1);
           };
           const auto form = [=] { return softmax(scores) - softmax(of_docs); };
           const auto differs = [=](const at::Tensor& expected) {
             return disagreement_of(slopes.view(expected.sizes()), expected);
           };
           return compared(own, form, differs, 1e-12);
         }});
  }

  /// A batch of 32 queries, of which each is taken from elsewhere, and the sum of gradients.
  void add_list_batch() {
    constexpr std::int64_t kQueries = 32;
    const std::int64_t docs = kQueries * sizes_.docs;
    cases_.push_back(
        {.name = "list_batch/gather_lists",
         .parameters = {{"queries", kQueries}, {"V", sizes_.docs}, {"d", sizes_.features}},
         .bytes = 2.0 * (kFloatBytes * real(sizes_.features) + 1.0) * real(docs),
         .prepare = [sizes = sizes_, docs](Stream) {
           std::vector<std::int64_t> first_docs;
           std::vector<std::int64_t> ends;
           for (std::int64_t query = 0; query < kQueries; ++query) {
             first_docs.push_back((kQueries - 1 - query) * sizes.docs);
             ends.push_back((query + 1) * sizes.docs);
           }
           const at::Tensor firsts = uploaded(sizes, first_docs);
           const at::Tensor list_ends = uploaded(sizes, ends);
           const at::Tensor from = at::rand({docs, sizes.features}, options_of(sizes, at::kFloat));
           const at::Tensor grades = at::ones({docs}, options_of(sizes, at::kByte));
           const at::Tensor to = empty_tensor(sizes, at::kFloat, {docs, sizes.features});
           const at::Tensor of_batch = empty_tensor(sizes, at::kByte, {docs});
           const auto own = [=](Stream on) {
             device::gather_lists(on, {kQueries, data<std::int64_t>(firsts), data<std::int64_t>(list_ends)},
                                  sizes.features, data<float>(from), data<std::uint8_t>(grades),
                                  data<float>(to), data<std::uint8_t>(of_batch));
           };
           const auto form = [=] {
             return from.view({kQueries, sizes.docs, sizes.features}).flip(0).contiguous();
           };
           const auto differs = [=](const at::Tensor& expected) {
             return disagreement_of(to.view(expected.sizes()), expected);
           };
           return compared(own, form, differs, 0.0);
         }});
    cases_.push_back(
        {.name = "list_batch/add_numbers",
         .parameters = {{"p", shape_.parameters()}},
         .operations = real(shape_.parameters()),
         .bytes = 3.0 * kDoubleBytes * real(shape_.parameters()),
         .arithmetic = Arithmetic::kDouble,
         .prepare = [sizes = sizes_, p = shape_.parameters()](Stream) {
           const at::Tensor numbers = at::zeros({p}, options_of(sizes, at::kDouble));
           const at::Tensor sum = at::ones({p}, options_of(sizes, at::kDouble));
           return compared(
               [=](Stream on) { device::add_numbers(on, p, data<double>(numbers), data<double>(sum)); },
               [=] { return sum + numbers; },
               [=](const at::Tensor& expected) { return disagreement_of(sum, expected); }, 0.0);
         }});
  }

  void add_query_inputs() {
    cases_.push_back(
        {.name = "query_inputs/query_inputs",
         .parameters = {{"V", sizes_.docs}, {"d", sizes_.features}},
         .operations = 2.0 * real(sizes_.docs * sizes_.features),
         .bytes = 2.0 * kFloatBytes * real(sizes_.docs * sizes_.features),
         .arithmetic = Arithmetic::kDouble,
         .prepare = [sizes = sizes_](Stream) {
           const at::Tensor from = at::rand({sizes.docs, sizes.features}, options_of(sizes, at::kFloat));
           const at::Tensor to = empty_tensor(sizes, at::kFloat, {sizes.docs, sizes.features});
           const at::Tensor bad = at::zeros({1}, options_of(sizes, at::kLong));
           const auto own = [=](Stream on) {
             device::query_inputs(on, {data<float>(from), sizes.docs, sizes.features, sizes.features}, true,
                                  1e12F, data<float>(to),
                                  reinterpret_cast<unsigned long long*>(data<std::int64_t>(bad)));
           };
           const auto form = [=] {
             const at::Tensor low = from.amin(0);
             return (from - low) / (from.amax(0) - low);
           };
           const auto differs = [=](const at::Tensor& expected) { return disagreement_of(to, expected); };
           return compared(own, form, differs, 1e-6);
         }});
  }

  void add_tangent_factors(std::int64_t members) {
    const double passes = 2.0 * real(members * sizes_.docs * shape_.parameters());
    const double bytes =
        kFloatBytes * (real(sizes_.docs * sizes_.features) + real(members * shape_.parameters()) +
                       real(members * sizes_.docs * shape_.factors()));
    cases_.push_back(
        {.name = "tangent_factors/tangent_factors",
         .parameters = {{"N", members}, {"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}},
         .operations = passes,
         .bytes = bytes,
         .arithmetic = Arithmetic::kFloat,
         .prepare = [sizes = sizes_, members](Stream stream) {
           const auto docs = make_docs(sizes, stream, sizes.docs, members);
           const auto own = [docs](Stream on) {
             device::tangent_factors(docs->products(on), docs->stack(), data<float>(docs->features),
                                     docs->view(), docs->out());
           };
           const auto form = [docs] {
             return libtorch::tangent_factors(docs->shape, docs->theta, docs->features);
           };
           DeviceWork work = alone(own);
           work.libtorch = [=] { form(); };
           work.disagreement = [=](Stream on) {
             own(on);
             const libtorch::Factors other = form();
             return std::max(disagreement_of(docs->rows, other.rows),
                             disagreement_of(docs->scores, other.scores));
           };
           work.tolerance = 1e-4;  // sums in float32
           return work;
         }});
  }

  void add_gather() {
    const double row = kFloatBytes * real(shape_.factors());
    cases_.push_back(
        {.name = "tangent_factors/gather_pairs",
         .parameters = {{"k", kRoundPairs}, {"m", sizes_.width}, {"d", sizes_.features}},
         .bytes = 4.0 * real(kRoundPairs) * row,
         .prepare = [sizes = sizes_](Stream stream) {
           const auto docs = make_docs(sizes, stream, sizes.docs);
           std::vector<std::int32_t> numbers;
           numbers.reserve(2 * kRoundPairs);
           for (std::int32_t i = 0; i < 2 * kRoundPairs; ++i)
             numbers.push_back(i * 7 % static_cast<std::int32_t>(sizes.docs));
           const at::Tensor pairs = uploaded(sizes, numbers);
           const at::Tensor to = empty_tensor(sizes, at::kFloat, {2 * kRoundPairs, docs->shape.factors()});
           const at::Tensor index = at::tensor(std::vector<std::int64_t>(numbers.begin(), numbers.end()))
                                        .to(options_of(sizes, at::kLong));
           return compared(
               [=](Stream on) {
                 device::gather_pairs(on, docs->view(), data<std::int32_t>(pairs), kRoundPairs,
                                      data<float>(to));
               },
               [=] { return docs->rows.select(0, 0).index_select(0, index); },
               [=](const at::Tensor& other) { return disagreement_of(to, other); }, 0.0);
         }});
  }

  /// Queries of V documents each, with distinct scores.
  struct Lists {
    at::Tensor offsets;
    at::Tensor scores;
    at::Tensor order;

    Lists(const DeviceSizes& sizes, std::int64_t queries)
        : scores(at::randperm(queries * sizes.docs, options_of(sizes, at::kLong))
                     .to(at::kFloat)
                     .view({queries, sizes.docs})),
          order(empty_tensor(sizes, at::kInt, {queries, sizes.docs})) {
      std::vector<std::int64_t> before;
      for (std::int64_t query = 0; query <= queries; ++query) before.push_back(query * sizes.docs);
      offsets = uploaded(sizes, before);
    }
  };

  void add_order(std::int64_t queries) {
    cases_.push_back({.name = "score_order/order_by_score",
                      .parameters = {{"queries", queries}, {"V", sizes_.docs}},
                      .bytes = 8.0 * real(queries * sizes_.docs),
                      .prepare = [sizes = sizes_, queries](Stream) {
                        const auto lists = std::make_shared<Lists>(sizes, queries);
                        return compared(
                            [=](Stream on) {
                              device::order_by_score(on, queries, data<std::int64_t>(lists->offsets),
                                                     data<float>(lists->scores),
                                                     data<std::int32_t>(lists->order), nullptr);
                            },
                            [=] { return at::argsort(lists->scores, true, 1, true); },
                            [=](const at::Tensor& other) { return disagreement_of(lists->order, other); },
                            0.0);
                      }});
  }

  void add_mean(std::int64_t members) {
    cases_.push_back(
        {.name = "score_order/mean_scores",
         .parameters = {{"N", members}, {"V", sizes_.docs}},
         .operations = real(members * sizes_.docs),
         .bytes = kFloatBytes * real((members + 1) * sizes_.docs),
         .prepare = [sizes = sizes_, members](Stream) {
           const at::Tensor scores = at::randn({members, sizes.docs}, options_of(sizes, at::kFloat));
           const at::Tensor mean = empty_tensor(sizes, at::kFloat, {sizes.docs});
           return compared(
               [=](Stream on) {
                 device::mean_scores(on, members, sizes.docs, data<float>(scores), data<float>(mean));
               },
               [=] { return at::mean(scores, at::IntArrayRef{0}); },
               [=](const at::Tensor& other) { return disagreement_of(mean, other); }, 1e-5);
         }});
  }

  /// One query in order of score, with the array of its bits.
  struct Placed {
    at::Tensor scores;
    at::Tensor magnitudes;
    at::Tensor order;
    at::Tensor bits;

    Placed(const DeviceSizes& sizes, std::int64_t members)
        : scores(at::randn({members, sizes.docs}, options_of(sizes, at::kFloat))),
          magnitudes(at::ones_like(scores)),
          order(at::argsort(scores.mean(0), true, 0, true).to(at::kInt)),
          bits(empty_tensor(sizes, at::kLong, {sizes.docs, OrderBits::words(sizes.docs)})) {}
  };

  double bytes_of_bits() const { return 8.0 * real(sizes_.docs * OrderBits::words(sizes_.docs)); }

  void add_certain_by_width() {
    const double square = real(sizes_.docs * sizes_.docs);
    cases_.push_back(
        {.name = "certain_orders/certain_by_width",
         .parameters = {{"V", sizes_.docs}},
         .operations = 8.0 * 0.5 * square,
         .bytes = 0.5 * kDoubleBytes * square + bytes_of_bits(),
         .prepare = [sizes = sizes_](Stream) {
           const auto query = std::make_shared<Placed>(sizes, 1);
           const at::Tensor half = at::randn({sizes.docs, 8}, options_of(sizes, at::kDouble)) * 0.1;
           const at::Tensor m = at::mm(half, half.t());
           const at::Tensor rule = uploaded(sizes, std::vector<CertaintyRule>{{0.5, 0.0}});
           return alone([=](Stream on) {
             device::certain_by_width(
                 on,
                 {sizes.docs, data<float>(query->scores), data<float>(query->magnitudes),
                  data<std::int32_t>(query->order), data<double>(m)},
                 data<CertaintyRule>(rule), data<std::uint64_t>(query->bits), nullptr, nullptr);
           });
         }});
  }

  void add_vote(std::int64_t members) {
    cases_.push_back({.name = "certain_orders/certain_by_vote",
                      .parameters = {{"N", members}, {"V", sizes_.docs}},
                      .operations = 0.5 * real(members * sizes_.docs * sizes_.docs),
                      .bytes = 2.0 * kFloatBytes * real(members * sizes_.docs) + bytes_of_bits(),
                      .arithmetic = Arithmetic::kFloat,
                      .prepare = [sizes = sizes_, members](Stream) {
                        const auto query = std::make_shared<Placed>(sizes, members);
                        return alone([=](Stream on) {
                          device::certain_by_vote(
                              on, members, sizes.docs, sizes.docs, data<float>(query->scores),
                              data<float>(query->magnitudes), data<std::int32_t>(query->order),
                              data<std::uint64_t>(query->bits));
                        });
                      }});
  }

  DeviceSizes sizes_;
  NetworkShape shape_;
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::vector<DeviceCase> ranking_cases(const DeviceSizes& sizes) {
  return RankingCases(sizes).all();
}

}  // namespace olrank
