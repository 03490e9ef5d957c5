#include "olrank/ranker.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "arrays.h"
#include "gil.h"
#include "olrank/error.h"

namespace olrank::python {
namespace {

/// A ranker that several threads may hold: their calls follow one another. Python runs while one works.
class SharedRanker {
 public:
  explicit SharedRanker(Ranker ranker) : ranker_(std::move(ranker)) {}

  template <class Call>
  auto with(Call call) {
    const Released released;
    const std::lock_guard lock(mutex_);
    return call(ranker_);
  }

 private:
  std::mutex mutex_;
  Ranker ranker_;
};

template <class Make>
SharedRanker* made_by(Make make) {
  return unlocked([&] { return new SharedRanker(make()); });
}

/// Returns the result of a function of the ranker, called when its turn has come.
template <class Result, class... Given>
auto in_turn(Result (Ranker::*function)(Given...) const) {
  return [function](SharedRanker& self, Given... given) {
    return self.with([&](Ranker& ranker) { return (ranker.*function)(given...); });
  };
}

struct HeldGpuDocs {
  nb::ndarray<nb::ro> tensor;
  GpuDocs docs;
};

HeldGpuDocs gpu_docs_of(nb::ndarray<nb::ro> tensor) {
  if (tensor.dtype() != nb::dtype<float>())
    throw nb::type_error("X lies on a GPU, where features must be float32: convert it, as by X.float().");
  if (tensor.ndim() != 2)
    throw InvalidArgument("X has " + std::to_string(tensor.ndim()) +
                          " dimensions: give a table, one row for each document.");
  const auto rows = static_cast<std::int64_t>(tensor.shape(0));
  const auto columns = static_cast<std::int64_t>(tensor.shape(1));
  const bool dense = columns <= 1 || tensor.stride(1) == 1;
  const std::int64_t stride = rows <= 1 ? columns : tensor.stride(0);
  if (!dense || stride < columns)
    throw InvalidArgument(
        "The values of a document must lie next to each other on a GPU: pass X.contiguous().");
  const GpuDocs docs{tensor.device_id(), static_cast<const float*>(tensor.data()), rows, columns, stride};
  return {std::move(tensor), docs};
}

std::span<const float> docs_of(const Floats& table) {
  return span_of(table);
}
const GpuDocs& docs_of(const HeldGpuDocs& given) {
  return given.docs;
}
std::size_t count_of(const Floats& table) {
  return table.shape(0);
}
std::size_t count_of(const HeldGpuDocs& given) {
  return static_cast<std::size_t>(given.docs.docs);
}

/// Adds what is computed from documents, which lie here or on a GPU.
template <class Docs>
void add_scoring(nb::class_<SharedRanker>& type) {
  type.def("rank",
           [](SharedRanker& self, const Docs& docs, std::string_view query, bool widths,
              std::int64_t ranks) {
             return self.with(
                 [&](Ranker& ranker) { return ranker.rank(docs_of(docs), query, widths, ranks); });
           })
      .def("score",
           [](SharedRanker& self, const Docs& docs) {
             return to_array(self.with([&](Ranker& ranker) { return ranker.score(docs_of(docs)); }));
           })
      .def("widths", [](SharedRanker& self, const Docs& docs) {
        auto widths = self.with([&](Ranker& ranker) { return ranker.widths(docs_of(docs)); });
        return to_array(std::move(widths), {count_of(docs), count_of(docs)});
      });
}

nb::object certain_of(const ShownList& list) {
  std::vector<std::int32_t> pairs;
  pairs.reserve(2 * list.certain.size());
  for (const CertainPair& pair : list.certain) {
    pairs.push_back(pair.first);
    pairs.push_back(pair.second);
  }
  return to_array(std::move(pairs), {list.certain.size(), 2});
}

/// "<olrank.Shown: rows 3, 0, 7 of 20 documents; 1 of 3 orders certain>".
std::string text_of(const ShownList& list) {
  std::string rows;
  for (const std::int32_t doc : list.docs) rows += (rows.empty() ? "" : ", ") + std::to_string(doc);
  const std::size_t orders = list.docs.empty() ? 0 : list.docs.size() * (list.docs.size() - 1) / 2;
  return "<olrank.Shown: rows " + rows + " of " + std::to_string(list.scores.size()) + " documents; " +
         std::to_string(list.certain.size()) + " of " + std::to_string(orders) + " orders certain>";
}

void add_shown_list(nb::module_& module) {
  nb::class_<ShownList>(module, "ShownList", "A list to show, with what the ranker knows about it.")
      .def(
          "__len__", [](const ShownList& list) { return list.docs.size(); }, "Documents shown.")
      .def("__repr__", &text_of)
      .def("__getstate__", [](const ShownList& list) { return to_bytes(list.bytes()); })
      .def("__setstate__",
           [](ShownList& list, const nb::bytes& state) {
             new (&list) ShownList(ShownList::from_bytes({state.c_str(), state.size()}));
           })
      .def_prop_ro("docs", view_of(&ShownList::docs), "Rows of X to show, best first.")
      .def_prop_ro("scores", view_of(&ShownList::scores), "The score of every document, by row of X.")
      .def_prop_ro(
          "propensity",
          [](nb::handle self) -> nb::object {
            const auto& list = nb::cast<const ShownList&>(self);
            if (list.propensity.empty()) return nb::none();
            return to_view<double>(list.propensity, self);
          },
          "Of each rank, the probability of its document there given those above; None where it has no "
          "closed form.")
      .def_prop_ro("certain", &certain_of, "Pairs (a, b) of shown documents: a certainly belongs before b.")
      .def_prop_ro(
          "widths",
          [](nb::handle self) -> nb::object {
            const auto& list = nb::cast<const ShownList&>(self);
            if (list.widths.empty()) return nb::none();
            const std::size_t docs = list.scores.size();
            return to_view<double>(list.widths, {docs, docs}, self);
          },
          "How uncertain the order of every two documents is, where rank() was asked for it; else None.");
}

}  // namespace

void add_rankers(nb::module_& module) {
  add_shown_list(module);
  nb::class_<HeldGpuDocs>(module, "GpuDocs").def_static("of", &gpu_docs_of);
  nb::class_<SharedRanker> ranker(module, "Ranker");
  add_scoring<Floats>(ranker);
  add_scoring<HeldGpuDocs>(ranker);
  ranker
      .def_static(
          "make",
          [](const std::string& kind, std::int64_t features, std::int64_t cutoff, std::uint64_t seed,
             const std::string& protocol, const std::string& normalise, std::uint64_t fold,
             const std::string& user, int threads, const std::string& device,
             std::map<std::string, std::string> settings) {
            return made_by([&] {
              return Ranker({kind, features, cutoff, seed, protocol, normalise, fold, user, threads, device,
                             std::move(settings)});
            });
          },
          nb::rv_policy::take_ownership)
      .def_static(
          "load",
          [](const std::string& file, int threads, bool trust_code, const std::string& device) {
            return made_by([&] { return Ranker::load(file, threads, trust_code, device); });
          },
          nb::rv_policy::take_ownership)
      .def_static(
          "from_bytes",
          [](const nb::bytes& state, int threads) {
            std::string bytes(state.c_str(), state.size());
            // The bytes are of a pickle, which could run code itself.
            return made_by([&] { return Ranker::from_bytes(std::move(bytes), threads, true); });
          },
          nb::rv_policy::take_ownership)
      .def("gpu", in_turn(&Ranker::gpu))
      .def("gpu_stream",
           [](SharedRanker& self) {
             return reinterpret_cast<std::uintptr_t>(
                 self.with([](Ranker& ranker) { return ranker.gpu_stream(); }));
           })
      .def("shown_list",
           [](SharedRanker& self, const Floats& docs, const Values<std::int32_t>& shown,
              std::string_view query) {
             return self.with(
                 [&](Ranker& ranker) { return ranker.shown_list(span_of(docs), span_of(shown), query); });
           })
      .def("learn",
           [](SharedRanker& self, const ShownList& list, const Values<std::uint8_t>& clicks,
              const Values<double>& rewards) {
             return self.with(
                 [&](Ranker& ranker) { return ranker.learn(list, span_of(clicks), span_of(rewards)); });
           })
      .def("bytes",
           [](SharedRanker& self) {
             return to_bytes(self.with([](Ranker& ranker) { return ranker.bytes(); }));
           })
      .def("save", in_turn(&Ranker::save))
      .def("save_model", in_turn(&Ranker::save_model))
      .def("fingerprint", in_turn(&Ranker::fingerprint))
      .def("settings", in_turn(&Ranker::settings))
      .def("kind", in_turn(&Ranker::kind))
      .def("features", in_turn(&Ranker::features))
      .def("feature_names", in_turn(&Ranker::feature_names))
      .def("name_features",
           [](SharedRanker& self, std::vector<std::string> names) {
             self.with([&](Ranker& ranker) { ranker.name_features(std::move(names)); });
           })
      .def("cutoff", in_turn(&Ranker::cutoff))
      .def("parameters", in_turn(&Ranker::parameters))
      .def("rounds", in_turn(&Ranker::rounds));
}

}  // namespace olrank::python
