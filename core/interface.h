#pragma once

namespace olrank {

/// The base of classes whose objects are held and destroyed by a pointer to the base, and never copied.
class Interface {
 public:
  Interface() = default;
  virtual ~Interface() = default;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
};

}  // namespace olrank
