#include "olrank/model.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "gil.h"
#include "olrank/error.h"
#include "olrank/external_model.h"

namespace olrank::python {
namespace {

/// A model in ONNX by what reads it in Python, which returns the number of features and a function.
ExternalModel model_of_onnx(const nb::object& read, std::string_view bytes, const std::string& name) {
  const Acquired acquired;
  try {
    const auto made = nb::cast<nb::tuple>(read(nb::bytes(bytes.data(), bytes.size())));
    const auto columns = nb::cast<std::size_t>(made[0]);
    const auto score = [columns, of = shared(made[1])](std::span<const float> docs,
                                                       std::span<double> scores) {
      const Acquired during;
      const nb::object table = to_array(std::vector(docs.begin(), docs.end()), {scores.size(), columns});
      const auto given = nb::cast<Values<double>>((*of)(table));
      std::copy_n(given.data(), scores.size(), scores.begin());  // of as many, as checked
    };
    return {"an ONNX model", static_cast<std::int64_t>(columns), {}, score};
  } catch (const nb::python_error& error) {
    if (!error.matches(nb::module_::import_("olrank.errors").attr("DataError"))) throw;
    throw DataError(name, 0, 0, nb::cast<std::string>(nb::str(error.value())));
  }
}

}  // namespace

void add_models(nb::module_& module) {
  nb::class_<Model>(module, "Model")
      .def_static("load", &Model::load, nb::call_guard<Released>())
      .def_static("from_bytes",
                  [](const nb::bytes& bytes) {  // of a pickle, which could run code itself
                    return Model::from_bytes(std::string(bytes.c_str(), bytes.size()), true);
                  })
      .def("features", &Model::features)
      .def("feature_names", &Model::feature_names)
      .def("normalises_by_query", &Model::normalises_by_query)
      .def("score",
           [](const Model& self, const Floats& docs, const Values<std::int64_t>& offsets,
              const std::vector<std::string>& queries, const std::vector<std::string>& ids) {
             return to_array(
                 unlocked([&] { return self.score(span_of(docs), span_of(offsets), queries, ids); }));
           })
      .def("score_data",
           [](const Model& self, const RankingData& data) {
             return to_array(unlocked([&] { return self.score(data); }));
           })
      .def("bytes", [](const Model& self) { return to_bytes(self.bytes()); })
      .def("save", &Model::save);
  module.def("read_onnx_by", [](nb::object read) {
    register_onnx_reader([read = shared(std::move(read))](std::string_view bytes, const std::string& name) {
      return model_of_onnx(*read, bytes, name);
    });
  });
  module.def("fit_model",
             [](const std::optional<RankingData>& train, const std::optional<RankingData>& validation,
                std::map<std::string, std::string> settings, std::string normalise, std::uint64_t seed,
                int threads, std::string device, std::vector<std::string> feature_names, std::string log,
                std::string estimator, std::string click_model, double clip) {
               const auto stopped = std::make_shared<std::atomic<bool>>(false);
               FitOptions options = {std::move(settings),
                                     std::move(normalise),
                                     seed,
                                     threads,
                                     std::move(device),
                                     std::move(feature_names),
                                     std::move(log),
                                     std::move(estimator),
                                     std::move(click_model),
                                     clip,
                                     [stopped] { return stopped->load(); }};
               Background<Model> training(
                   [train, validation, options] { return fit_model(train, validation, options); });
               while (!training.wait()) {
                 if (PyErr_CheckSignals() == 0) continue;
                 *stopped = true;
                 training.leave();
                 throw nb::python_error();
               }
               return training.result();
             });
}

}  // namespace olrank::python
