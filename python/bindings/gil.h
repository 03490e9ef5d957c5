#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
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

/// Work on a thread of its own, so that the calling thread can look for signals while it waits. All
/// functions are called with the lock of Python held.
template <class Result>
class Background {
 public:
  explicit Background(std::function<Result()> work) {
    thread_ = std::thread([shared = shared_, work = std::move(work)] {
      try {
        shared->result = work();
      } catch (...) {
        shared->failure = std::current_exception();
      }
      const std::lock_guard lock(shared->mutex);
      shared->ended = true;
      shared->condition.notify_all();
    });
  }
  ~Background() { join(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Waits for a tenth of a second or the end; whether it has ended.
  bool wait() {
    const Released released;
    std::unique_lock lock(shared_->mutex);
    shared_->condition.wait_for(lock, std::chrono::milliseconds(100), [this] { return shared_->ended; });
    return shared_->ended;
  }
  Result result() {
    join();
    if (shared_->failure) std::rethrow_exception(shared_->failure);
    return std::move(*shared_->result);
  }
  /// Returns while the work goes on to its next stop. The process does not end before that.
  void leave() {
    wait_at_end([thread = std::make_shared<std::thread>(std::move(thread_))] { thread->join(); });
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable condition;
    bool ended = false;
    std::optional<Result> result;
    std::exception_ptr failure;
  };

  void join() {
    const Released released;
    if (thread_.joinable()) thread_.join();
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
};

// The parts of the module olrank._core. Each function adds its own.
void add_errors();
void add_rankers(nanobind::module_& module);
void add_data(nanobind::module_& module);
void add_models(nanobind::module_& module);
void add_experiments(nanobind::module_& module);

}  // namespace olrank::python
