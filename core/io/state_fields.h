#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/io/state_archive.h"

namespace olrank {

/// The fields of a class in the order in which a checkpoint has them. One function of the class names them,
/// and this either writes or reads each: a StateWriter's entries are read with the reader's checks.
class StateFields {
 public:
  explicit StateFields(StateWriter& state) : writer_(&state) {}
  explicit StateFields(StateReader& state) : reader_(&state) {}

  bool reads() const { return reader_ != nullptr; }
  StateWriter& writer() const { return *writer_; }
  StateReader& reader() const { return *reader_; }

  /// Numbers of one type as one entry; a bool takes a byte.
  template <class T, class... More>
  void numbers(std::string_view name, T& first, More&... more) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    Stored packed[] = {static_cast<Stored>(first), static_cast<Stored>(more)...};
    sized(name, packed);
    if (!reads()) return;
    const Stored* next = packed;
    first = static_cast<T>(*next++);
    ((more = static_cast<T>(*next++)), ...);
  }
  /// A number that a function sets.
  template <class T, class Set>
  void number(std::string_view name, T value, const Set& set) {
    numbers(name, value);
    if (reads()) set(value);
  }
  /// An array whose size is known: another count is refused.
  template <class Values>
  void sized(std::string_view name, Values&& values) {
    using T = std::remove_reference_t<decltype(*std::data(values))>;
    const std::span<T> all(values);
    if (reads()) {
      reader_->get_into(name, all);
    } else {
      writer_->put(name, std::span<const T>(all));
    }
  }
  /// An array of any size.
  template <class T>
  void any(std::string_view name, std::vector<T>& values) {
    if (reads()) {
      values = reader_->get<T>(name);
    } else {
      writer_->put(name, values);
    }
  }
  /// An array whose size is known and whose values never change while the lineage is the same.
  template <class T>
  void growing(std::string_view name, Lineage& lineage, std::vector<T>& values) {
    if (reads()) {
      reader_->get_into(name, std::span<T>(values));
      lineage.renew();
    } else {
      writer_->put_growing(name, lineage, std::span<const T>(values), std::ssize(values));
    }
  }
  void text(std::string_view name, std::string& letters) {
    if (reads()) {
      letters = reader_->get_text(name);
    } else {
      writer_->put_text(name, letters);
    }
  }
  /// Something that saves and loads itself.
  template <class Part>
  void part(Part& whole) {
    if (reads()) {
      whole.load(*reader_);
    } else {
      whole.save(*writer_);
    }
  }

  /// Refuses a file whose values break a rule.
  void require(bool holds, std::string_view sentence) const {
    if (reads() && !holds) reader_->fail(sentence);
  }

 private:
  StateWriter* writer_ = nullptr;
  StateReader* reader_ = nullptr;
};

/// Writes the fields; nothing that is written changes, so `whole` may be constant.
template <class Whole, class... More>
void save_fields(const Whole& whole, StateWriter& state, const More&... more) {
  StateFields fields(state);
  const_cast<Whole&>(whole).fields(fields, more...);
}
template <class Whole, class... More>
void load_fields(Whole& whole, StateReader& state, const More&... more) {
  StateFields fields(state);
  whole.fields(fields, more...);
}

/// A Stateful saves and loads itself by its fields, unless it overrides both functions.
class Stateful {
 public:
  Stateful() = default;
  virtual ~Stateful() = default;
  Stateful(const Stateful&) = default;
  Stateful& operator=(const Stateful&) = default;

  virtual void save(StateWriter& state) const { save_fields(*this, state); }
  virtual void load(StateReader& state) { load_fields(*this, state); }
  virtual void fields(StateFields& /*state*/) {}
};

}  // namespace olrank
