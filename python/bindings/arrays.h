#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace olrank::python {

namespace nb = nanobind;

/// Arrays of Python's as the wrapper in Python hands them over: of this type, contiguous, on the CPU.
using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Values = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto span_of(const Array& array) {
  return std::span(array.data(), array.size());
}

template <class T>
std::vector<T> copy_of(const Values<T>& array) {
  return {array.data(), array.data() + array.size()};
}

/// A NumPy array that owns the values.
template <class T>
nb::object to_array(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<std::vector<T>*>(held); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape, owner));
}
template <class T>
nb::object to_array(std::vector<T> values) {
  const std::size_t size = values.size();
  return to_array(std::move(values), {size});
}

/// A read-only NumPy array of memory that `owner` keeps.
template <class T>
nb::object to_view(std::span<const T> values, std::initializer_list<std::size_t> shape, nb::handle owner) {
  return nb::cast(nb::ndarray<nb::numpy, const T>(values.data(), shape, owner));
}
template <class T>
nb::object to_view(std::span<const T> values, nb::handle owner) {
  return to_view(values, {values.size()}, owner);
}

/// Such a view of numbers that an object has, by its member or the function that returns them.
template <class Object, class Member>
auto view_of(Member Object::*member) {
  return [member](nb::handle self) {
    const std::span values(std::invoke(member, nb::cast<const Object&>(self)));
    return to_view<std::remove_const_t<typename decltype(values)::element_type>>(values, self);
  };
}

inline nb::bytes to_bytes(const std::string& text) {
  return nb::bytes(text.data(), text.size());
}

}  // namespace olrank::python
