#include "olrank/data.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "gil.h"
#include "olrank/evaluation.h"
#include "olrank/logs.h"

namespace olrank::python {
namespace {

RankingData data_of(const Floats& values, const Values<std::uint8_t>& grades,
                    const Values<std::int64_t>& offsets, std::vector<std::string> names,
                    const Values<float>& weights, nb::object arrays) {
  const auto owner = shared(std::move(arrays));
  const Released released;
  return RankingData::of(owner, span_of(values), static_cast<std::int64_t>(values.shape(1)),
                         span_of(grades), span_of(offsets), std::move(names), copy_of(weights));
}

RankingData sparse_data_of(const Values<std::int64_t>& begins, const Values<std::int32_t>& columns,
                           const Values<float>& values, std::int64_t features,
                           const Values<std::uint8_t>& grades, const Values<std::int64_t>& offsets,
                           std::vector<std::string> names, const Values<float>& weights,
                           nb::object arrays) {
  const auto owner = shared(std::move(arrays));
  const Released released;
  return RankingData::of(owner, {span_of(begins), span_of(columns), span_of(values)}, features,
                         span_of(grades), span_of(offsets), std::move(names), copy_of(weights));
}

nb::object evaluate(const RankingData& data, const Values<double>& scores, EvaluationOptions options) {
  const MetricValues values = unlocked([&] { return measure_scores(data, span_of(scores), options); });
  nb::dict means;
  for (const auto& [name, value] : values.means) means[name.c_str()] = value;
  if (!options.by_query) return std::move(means);
  nb::dict by_query;
  for (std::size_t column = 0; column < values.means.size(); ++column) {
    std::vector<double> of_queries;
    of_queries.reserve(values.by_query.size());
    for (const std::vector<double>& row : values.by_query) of_queries.push_back(row[column]);
    by_query[values.means[column].first.c_str()] = to_array(std::move(of_queries));
  }
  return nb::make_tuple(means, by_query);
}

}  // namespace

void add_data(nb::module_& module) {
  nb::class_<RankingData>(module, "RankingData")
      .def_static("load", &RankingData::load, nb::call_guard<Released>())
      .def_static("of", &data_of)
      .def_static("of_sparse", &sparse_data_of)
      .def("is_sparse", &RankingData::is_sparse)
      .def("sparse_values",
           [](nb::handle self) {
             const SparseValues rows = nb::cast<const RankingData&>(self).sparse_values();
             return nb::make_tuple(to_view(rows.values, self), to_view(rows.columns, self),
                                   to_view(rows.begins, self));
           })
      .def("queries", &RankingData::queries)
      .def("docs", &RankingData::docs)
      .def("features", &RankingData::features)
      .def("values",
           [](nb::handle self) {
             const auto& data = nb::cast<const RankingData&>(self);
             return to_view<float>(
                 data.values(),
                 {static_cast<std::size_t>(data.docs()), static_cast<std::size_t>(data.features())}, self);
           })
      .def("grades", view_of(&RankingData::grades))
      .def("offsets", view_of(&RankingData::offsets))
      .def("weights", view_of(&RankingData::weights))
      .def("name",
           [](const RankingData& self, std::int64_t query) { return std::string(self.name(query)); })
      .def("fingerprint", &RankingData::fingerprint)
      .def("bytes", [](const RankingData& self) { return to_bytes(self.bytes()); })
      .def_static("from_bytes",
                  [](const nb::bytes& bytes) {
                    return RankingData::from_bytes({bytes.c_str(), bytes.size()});
                  })
      .def("write", &RankingData::write, nb::call_guard<Released>());
  module.def("evaluate",
             [](const RankingData& data, const Values<double>& scores, std::vector<std::int64_t> at,
                std::vector<std::string> metrics, std::string convention, std::string gain,
                std::string empty_queries, std::optional<int> max_grade, bool by_query, int threads) {
               return evaluate(data, scores,
                               {std::move(at), std::move(metrics), std::move(convention), std::move(gain),
                                std::move(empty_queries), max_grade, by_query, threads});
             });
  module.def(
      "off_policy_values",
      [](const std::optional<RankingData>& data, std::string log, std::vector<std::string> models,
         std::string policy, std::string reward, std::vector<std::string> estimators,
         std::string click_model, std::int64_t at, double clip, double confidence, std::int64_t replicates,
         std::uint64_t seed, int threads, bool trust_code, std::string page) {
        return off_policy_values({std::move(log), std::move(models), std::move(policy), std::move(reward),
                                  std::move(estimators), std::move(click_model), at, clip, confidence,
                                  replicates, seed, threads, trust_code, std::move(page)},
                                 data ? &*data : nullptr);
      },
      nb::call_guard<Released>());
  module.def(
      "fit_click_models",
      [](std::string log, std::string model, double holdout, std::int64_t at, std::int64_t iterations) {
        return fit_click_models({std::move(log), std::move(model), holdout, at, iterations});
      },
      nb::call_guard<Released>());
}

}  // namespace olrank::python
