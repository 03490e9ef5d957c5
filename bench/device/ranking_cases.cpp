#include <algorithm>

#include "bench/device/libtorch_forms.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/query_inputs.h"
#include "cuda/ops/tangent_factors.h"

// From features to factors, scores and orders.
namespace olrank {
namespace {

/// The end of each list, of equal lengths.
std::vector<std::int64_t> ends_of(std::int64_t lists, std::int64_t docs) {
  std::vector<std::int64_t> ends;
  for (std::int64_t list = 1; list <= lists; ++list) ends.push_back(list * docs);
  return ends;
}

/// One query in order of score, with the array of its bits.
struct Placed {
  Array<float> scores;
  Array<float> magnitudes;
  Array<std::int32_t> order;
  Array<std::uint64_t> bits;

  Placed(const Operands& make, std::int64_t members)
      : scores(make.randn<float>({members, make.sizes.docs})),
        magnitudes(make.full<float>({members, make.sizes.docs}, 1.0)),
        order{at::argsort(scores.t.mean(0), true, 0, true).to(at::kInt)},
        bits(make.empty<std::uint64_t>({make.sizes.docs, OrderBits::words(make.sizes.docs)})) {}
};

void add_factors(Launches& table) {
  const Operands make{table.sizes};
  const std::int64_t docs = table.sizes.docs, features = table.sizes.features, width = table.sizes.width;
  const double numbers = real(docs * features);
  table.add("query_inputs/query_inputs", {{"V", docs}, {"d", features}},
            {2.0 * numbers, 2.0 * kFloatBytes * numbers}, [=](Stream) {
              const auto from = make.rand<float>({docs, features});
              const auto to = make.empty<float>({docs, features});
              const auto bad = make.full<unsigned long long>({1}, 0.0);
              return compared(
                  [=](Stream on) {
                    device::query_inputs(on, {from, docs, features, features}, true, 1e12F, to, bad);
                  },
                  [=] {
                    const at::Tensor low = from.t.amin(0);
                    return (from.t - low) / (from.t.amax(0) - low);
                  },
                  to.t, 1e-6);
            });
  for (const std::int64_t members : table.sizes.members) {
    const double bytes =
        kFloatBytes * (numbers + real(members * table.p) + real(members * docs * table.shape.factors()));
    table.add("tangent_factors/tangent_factors",
              {{"N", members}, {"V", docs}, {"m", width}, {"d", features}},
              {2.0 * real(members * docs * table.p), bytes, Arithmetic::kFloat}, [=](Stream stream) {
                const auto made = make_docs(make.sizes, stream, docs, members);
                const auto own = [made](Stream on) {
                  device::tangent_factors(made->products(on), made->stack(), made->features, made->view(),
                                          made->out());
                };
                const auto form = [made] {
                  return libtorch::tangent_factors(made->shape, made->theta.t, made->features.t);
                };
                const auto disagreement = [=](Stream on) {
                  own(on);
                  const libtorch::Factors other = form();
                  return std::max(disagreement_of(made->rows.t, other.rows),
                                  disagreement_of(made->scores.t, other.scores));
                };
                return DeviceWork{.own = own,
                                  .libtorch = [=] { form(); },
                                  .disagreement = disagreement,
                                  .tolerance = 1e-4};  // sums in float32
              });
  }
}

void add_orders(Launches& table) {
  const Operands make{table.sizes};
  const std::int64_t docs = table.sizes.docs;
  for (const std::int64_t queries : {std::int64_t{1}, table.sizes.test_queries}) {
    table.add(
        "score_order/order_by_score", {{"queries", queries}, {"V", docs}},
        {0.0, 8.0 * real(queries * docs)}, [=](Stream) {
          std::vector<std::int64_t> before = ends_of(queries, docs);
          before.insert(before.begin(), 0);
          const auto offsets = make.these(before);
          const Array<float> scores{at::randperm(queries * docs, make.options<std::int64_t>())
                                        .to(at::kFloat)
                                        .view({queries, docs})};
          const auto order = make.empty<std::int32_t>({queries, docs});
          return compared(
              [=](Stream on) { device::order_by_score(on, queries, offsets, scores, order, nullptr); },
              [=] { return at::argsort(scores.t, true, 1, true); }, order.t, 0.0);
        });
  }
  const double square = real(docs * docs);
  const double bits = 8.0 * real(docs * OrderBits::words(docs));
  table.add("certain_orders/certain_by_width", {{"V", docs}},
            {4.0 * square, 0.5 * kDoubleBytes * square + bits}, [=](Stream) {
              const Placed query(make, 1);
              const at::Tensor half = make.randn<double>({docs, 8}).t * 0.1;
              const Array<double> m{at::mm(half, half.t())};
              const auto rule = make.these(std::vector<CertaintyRule>{{0.5, 0.0}});
              return alone([=](Stream on) {
                device::certain_by_width(on, {docs, query.scores, query.magnitudes, query.order, m}, rule,
                                         query.bits, nullptr, nullptr);
              });
            });
  const std::int64_t members = *std::max_element(table.sizes.members.begin(), table.sizes.members.end());
  table.add(
      "certain_orders/certain_by_vote", {{"N", members}, {"V", docs}},
      {0.5 * real(members) * square, 2.0 * kFloatBytes * real(members * docs) + bits, Arithmetic::kFloat},
      [=](Stream) {
        const Placed query(make, members);
        return alone([=](Stream on) {
          device::certain_by_vote(on, members, docs, docs, query.scores, query.magnitudes, query.order,
                                  query.bits);
        });
      });
}

/// ListNet, three exponentials a document, on as many lists as a test part has, of one length for LibTorch;
/// and a batch of 32 queries, of which each is taken from elsewhere.
void add_lists(Launches& table) {
  const Operands make{table.sizes};
  const std::int64_t queries = table.sizes.test_queries, length = table.sizes.docs;
  const std::int64_t features = table.sizes.features, docs = queries * length;
  table.add("list_loss/list_losses", {{"queries", queries}, {"V", length}},
            {100.0 * real(docs), (kFloatBytes + 1.0 + kDoubleBytes) * real(docs)}, [=](Stream) {
              std::vector<std::uint8_t> made;
              for (std::int64_t doc = 0; doc < docs; ++doc)
                made.push_back(static_cast<std::uint8_t>(doc * 7 % 5));
              const auto ends = make.these(ends_of(queries, length));
              const auto grades = make.these(made);
              const auto scores = make.randn<float>({docs});
              const auto work = make.empty<double>({docs});
              const auto losses = make.empty<double>({queries});
              const auto slopes = make.empty<double>({docs});
              const auto softmax = [=](const at::Tensor& values) {
                return at::softmax(values.to(at::kDouble).view({queries, length}), 1);
              };
              return compared(
                  [=](Stream on) {
                    device::list_losses(on, {}, {queries, docs, ends, grades, nullptr}, scores, work,
                                        losses, slopes);
                  },
                  [=] { return softmax(scores.t) - softmax(grades.t); }, slopes.t, 1e-12);
            });
  constexpr std::int64_t kQueries = 32;
  const std::int64_t batch = kQueries * length;
  table.add(
      "list_batch/gather_lists", {{"queries", kQueries}, {"V", length}, {"d", features}},
      {0.0, 2.0 * (kFloatBytes * real(features) + 1.0) * real(batch)}, [=](Stream) {
        std::vector<std::int64_t> first_docs = ends_of(kQueries, length);
        std::reverse(first_docs.begin(), first_docs.end());
        for (std::int64_t& doc : first_docs) doc -= length;
        const auto firsts = make.these(first_docs);
        const auto ends = make.these(ends_of(kQueries, length));
        const auto from = make.rand<float>({batch, features});
        const auto grades = make.full<std::uint8_t>({batch}, 1.0);
        const auto to = make.empty<float>({batch, features});
        const auto of_batch = make.empty<std::uint8_t>({batch});
        return compared(
            [=](Stream on) {
              device::gather_lists(on, {kQueries, firsts, ends}, features, from, grades, to, of_batch);
            },
            [=] {
              return from.t.view({kQueries, length, features}).flip(0).contiguous();
            },
            to.t, 0.0);
      });
}

/// The forward pass of three layers.
void add_deep(Launches& table, std::int64_t members) {
  DeviceSizes deep = table.sizes;
  deep.depth = 3;
  const NetworkShape shape = ntk_shape(deep.features, deep.width, deep.depth);
  const double docs = real(members * deep.docs);
  table.add("relu_layers/forward",
            {{"N", members}, {"V", deep.docs}, {"m", deep.width}, {"d", deep.features}, {"L", 3}},
            {2.0 * docs * real(shape.parameters()),
             kFloatBytes * (real(deep.docs * deep.features) + real(members * shape.parameters()) +
                            docs * real(shape.factors())),
             Arithmetic::kFloat},
            [=](Stream stream) {
              const auto made = make_docs(deep, stream, deep.docs, members);
              return alone([=](Stream on) {
                device::forward(made->products(on), made->stack(), made->features, made->view(),
                                made->out());
              });
            });
}

}  // namespace

void add_ranking(Launches& table) {
  add_factors(table);
  for (const std::int64_t members : table.sizes.members) add_deep(table, members);
  add_orders(table);
  add_lists(table);
}

}  // namespace olrank
