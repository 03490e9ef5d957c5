#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace olrank::python {
namespace {

std::atomic<bool> ending{false};
std::atomic<int> entering{0};  // threads between their look at `ending` and the lock of Python
thread_local bool ends_interpreter = false;

/// With the lock of Python held.
std::vector<std::function<void()>>& left_work() {
  static std::vector<std::function<void()>> work;
  return work;
}

/// Calls take(), which waits for the lock of Python, unless the interpreter has begun to end.
template <class Take>
auto enter(Take take) {
  entering.fetch_add(1);
  if (ending && !ends_interpreter) {
    entering.fetch_sub(1);
    for (;;) pause();
  }
  if constexpr (std::is_void_v<decltype(take())>) {
    take();
    entering.fetch_sub(1);
  } else {
    auto taken = take();
    entering.fetch_sub(1);
    return taken;
  }
}

}  // namespace

Released::~Released() {
  enter([this] { PyEval_RestoreThread(state_); });
}

Acquired::Acquired() : state_(enter([] { return PyGILState_Ensure(); })) {}

void wait_at_end(std::function<void()> wait) {
  left_work().push_back(std::move(wait));
}

void end_interpreter() {
  ends_interpreter = true;
  // Threads that stay behind keep their objects, which is no leak.
  PyThreadState* const first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  if (PyThreadState_Next(first) != nullptr) nanobind::set_leak_warnings(false);
  PyThreadState* const state = PyEval_SaveThread();
  for (const std::function<void()>& wait : left_work()) wait();
  left_work().clear();
  ending = true;
  // Those that have looked already get the lock before Python takes it away for good.
  while (entering > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

}  // namespace olrank::python
