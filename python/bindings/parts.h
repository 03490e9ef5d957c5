#pragma once

#include <nanobind/nanobind.h>

/// The parts of the module olrank._core. Each function adds its own.
namespace olrank::python {

void add_errors();
void add_rankers(nanobind::module_& module);
void add_data(nanobind::module_& module);
void add_logs(nanobind::module_& module);
void add_models(nanobind::module_& module);
void add_experiments(nanobind::module_& module);

}  // namespace olrank::python
