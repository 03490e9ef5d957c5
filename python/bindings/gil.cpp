#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace olrank::python {
namespace {

std::atomic<bool> ending{false};
std::atomic<int> entering{
    0};  // threads between their look at `ending` and the lock of Python, and in callbacks
thread_local bool ends_interpreter = false;
thread_local int callbacks = 0;  // of this thread
const pid_t process = getpid();  // a forked child has one thread, and none to wait for

/// Callers hold the lock of Python.
std::vector<std::function<void()>>& left_work() {
  static std::vector<std::function<void()>> work;
  return work;
}

/// It is called before a thread waits for the lock of Python. One that is in a callback of Python's comes
/// back in any case.
void begin_entering() {
  entering.fetch_add(1);
  if (!ending || ends_interpreter || callbacks > 0) return;
  entering.fetch_sub(1);
  for (;;) pause();
}

}  // namespace

Released::~Released() {
  begin_entering();
  PyEval_RestoreThread(state_);
  entering.fetch_sub(1);
}

Acquired::Acquired() {
  begin_entering();
  state_ = PyGILState_Ensure();
  ++callbacks;
}

Acquired::~Acquired() {
  --callbacks;
  PyGILState_Release(state_);
  entering.fetch_sub(1);
}

void wait_at_end(std::function<void()> wait) {
  left_work().push_back(std::move(wait));
}

void end_interpreter() {
  if (getpid() != process) return;
  ends_interpreter = true;
  // Threads that stay behind keep their objects, which is no leak.
#if defined(Py_LIMITED_API)
  const bool others = nanobind::len(nanobind::module_::import_("sys").attr("_current_frames")()) > 1;
#else
  const bool others =
      PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) != nullptr;
#endif
  if (others) nanobind::set_leak_warnings(false);
  PyThreadState* const state = PyEval_SaveThread();
  for (const std::function<void()>& wait : left_work()) wait();
  left_work().clear();
  ending = true;
  // Threads that have looked already get the lock before Python takes it away for good, and callbacks end,
  // unless they take longer than anybody would wait.
  for (int waited = 0; entering > 0 && waited < 5000; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

}  // namespace olrank::python
