#pragma once

#include <memory>
#include <type_traits>
#include <utility>

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

}  // namespace olrank
