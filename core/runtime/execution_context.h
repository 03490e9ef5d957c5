#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace olrank {

template <class Signature>
class FunctionRef;

/// A reference to a callable that the caller keeps alive, for parameters that are only called: unlike
/// std::function it never allocates.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
           std::is_invocable_r_v<Result, Callable&, Arguments...>)
      FunctionRef(Callable&& callable)  // NOLINT: lambdas convert
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* stored, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(stored))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(callable_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* callable_;
  Result (*call_)(void*, Arguments...);
};

/// Temporary memory of one operation, allocated from a stack and released when its frame ends. The stack
/// grows to the size of the largest frame and then allocates no more.
class Scratch {
 public:
  static constexpr std::size_t kAlignment = 64;

  /// Releases everything taken during its lifetime; frames nest.
  class Frame {
   public:
    explicit Frame(Scratch& scratch) : scratch_(scratch), chunk_(scratch.chunk_), used_(scratch.used_) {}
    ~Frame() {
      scratch_.chunk_ = chunk_;
      scratch_.used_ = used_;
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t chunk_;
    std::size_t used_;
  };

  /// Uninitialised and aligned to a cache line.
  template <class T>
  std::span<T> take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return {static_cast<T*>(take_bytes(count * sizeof(T))), count};
  }

  std::size_t capacity() const;

 private:
  struct FreeAligned {
    void operator()(std::byte* memory) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte[], FreeAligned> memory;
    std::size_t size = 0;
  };

  void* take_bytes(std::size_t bytes);

  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // the one being filled
  std::size_t used_ = 0;   // bytes of it
};

/// Threads that run numbered tasks. Any thread may run any task, so that a task writes only what belongs to
/// its number, and sums over tasks follow the order of the numbers: results do not depend on the number of
/// threads.
class ThreadPool {
 public:
  /// `threads` ≥ 1 includes the caller, which works too.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls task(number, worker) for each number in [0, tasks), worker in [0, threads()), and returns when
  /// all are done. If tasks throw, all others still run, and run() throws the exception of the lowest
  /// number. Not reentrant: a task must not call run() of the same pool.
  void run(std::int64_t tasks, FunctionRef<void(std::int64_t task, int worker)> task);

 private:
  struct State;
  void work(int worker);

  int threads_;
  std::unique_ptr<State> state_;
};

/// The threads and scratch memory of a computation, passed first to every function that computes. Each
/// trial has its own; nothing is global.
class ExecutionContext {
 public:
  explicit ExecutionContext(int threads = 1);

  ThreadPool& pool() { return pool_; }
  int threads() const { return pool_.threads(); }
  /// The scratch memory of one worker; worker 0 is the calling thread.
  Scratch& scratch(int worker = 0) { return scratch_[worker]; }

  /// Splits [0, count) into blocks of `block` items, the last one shorter, and calls
  /// body(begin, end, worker) for each. Block boundaries depend on `block` alone, never on the threads.
  void for_blocks(std::int64_t count, std::int64_t block,
                  FunctionRef<void(std::int64_t begin, std::int64_t end, int worker)> body);

 private:
  ThreadPool pool_;
  std::vector<Scratch> scratch_;
};

/// The cores that this process may use, by its affinity and its control group's quota; at least 1.
int available_threads();

/// Bytes of memory that this process may use: the machine's, or its control group's limit if that is lower.
std::int64_t available_memory();

/// Allocates on cache lines, so that the bits of a product never depend on the address of an array. The
/// allocation behind it is an ordinary one, which the system has at hand sooner than an aligned one, and
/// its address is stored before the array.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::size_t kAlignment = 64;
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= sizeof(void*));

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    void* const whole = ::operator new(count * sizeof(T) + kAlignment);
    const auto address = reinterpret_cast<std::uintptr_t>(whole);
    auto* const memory = static_cast<std::byte*>(whole) + (kAlignment - address % kAlignment);
    reinterpret_cast<void**>(memory)[-1] = whole;
    return reinterpret_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(reinterpret_cast<void**>(memory)[-1]); }

  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace olrank
