#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <new>

#include "gil.h"
#include "olrank/error.h"
#include "olrank/ranker.h"
#include "olrank/settings.h"

namespace olrank {
/// Null where the library has no command line.
[[gnu::weak]] int run_program(int argc, char** argv);
}  // namespace olrank

namespace olrank::python {
namespace {

namespace nb = nanobind;

void raise(const char* name, const char* message) {
  const nb::object type = nb::module_::import_("olrank.errors").attr(name);
  PyErr_SetString(type.ptr(), message);
}

}  // namespace

void add_errors() {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const InvalidArgument& wrong) {
      raise("InvalidArgument", wrong.what());
    } catch (const DataError& wrong) {
      raise("DataError", wrong.what());
    } catch (const NumericError& wrong) {
      raise("NumericError", wrong.what());
    } catch (const Error& wrong) {
      raise("Error", wrong.what());
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError,
                      "The memory of this machine is not enough: take fewer features or documents, or a "
                      "smaller network.");
    }
  });
}

}  // namespace olrank::python

NB_MODULE(_core, module) {
  module.doc() = "The engine of olrank. Use the package olrank, which wraps it.";
  olrank::python::add_errors();
  olrank::python::add_data(module);
  olrank::python::add_rankers(module);
  olrank::python::add_models(module);
  olrank::python::add_experiments(module);
  module.def("settings_json", &olrank::settings_json, "Every setting as JSON.");
  module.def("program", [](std::vector<std::string> arguments) {
    if (&olrank::run_program == nullptr) throw olrank::Error("This library has no command line.");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return olrank::python::unlocked(
        [&] { return olrank::run_program(static_cast<int>(arguments.size()), argv.data()); });
  });
  module.def("end_interpreter", &olrank::python::end_interpreter);
  module.def("version", &olrank::library_version, "The version of the engine.");
}
