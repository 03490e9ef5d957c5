#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <utility>

namespace olrank::python {

/// Lets other threads of Python run while this object exists. A thread that comes back when the interpreter
/// ends sleeps from then on: Python would end it in the middle of C++ code, and with it the process.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// Returns the result of the work, done while other threads of Python run.
template <class Work>
auto unlocked(const Work& work) {
  const Released released;
  return work();
}

/// Holds the lock of Python on a thread of the engine, with the same care at the end.
class Acquired {
 public:
  Acquired();
  ~Acquired();
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  PyGILState_STATE state_;
};

/// An object of Python's that any thread may let go of.
inline std::shared_ptr<nanobind::object> shared(nanobind::object object) {
  return {new nanobind::object(std::move(object)), [](nanobind::object* held) {
            const Acquired acquired;
            delete held;
          }};
}

/// Runs when the interpreter begins to end: waits for work that was left, and from then on no other thread
/// comes back to it.
void end_interpreter();
/// Adds what end_interpreter() waits for.
void wait_at_end(std::function<void()> wait);

// The parts of the module olrank._core. Each function adds its own.
void add_errors();
void add_rankers(nanobind::module_& module);
void add_data(nanobind::module_& module);
void add_logs(nanobind::module_& module);
void add_models(nanobind::module_& module);
void add_experiments(nanobind::module_& module);

}  // namespace olrank::python
