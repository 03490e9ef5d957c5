#include "olrank/logs.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "gil.h"

namespace olrank::python {

void add_logs(nb::module_& module) {
  module.def(
      "off_policy_values",
      [](const nb::object& data, std::string log, std::vector<std::string> models, std::string policy,
         std::string reward, std::vector<std::string> estimators, std::string click_model, std::int64_t at,
         double clip, double confidence, std::int64_t replicates, std::uint64_t seed, int threads,
         bool trust_code, std::string page) {
        const RankingData* given = data.is_none() ? nullptr : &nb::cast<const RankingData&>(data);
        const Released released;
        return off_policy_values({std::move(log), std::move(models), std::move(policy), std::move(reward),
                                  std::move(estimators), std::move(click_model), at, clip, confidence,
                                  replicates, seed, threads, trust_code, std::move(page)},
                                 given);
      });
  module.def("fit_click_models", [](std::string log, std::string model, double holdout, std::int64_t at,
                                    std::int64_t iterations) {
    const Released released;
    return fit_click_models({std::move(log), std::move(model), holdout, at, iterations});
  });
}

}  // namespace olrank::python
