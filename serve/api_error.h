#pragma once

#include <string>

#include "core/error.h"

namespace olrank {

/// A rejected request, as the client sees it.
class ApiError : public Error {
 public:
  /// `field` names the offending part of the request, such as "docs[3].features"; empty if there is none.
  ApiError(int status, std::string field, const std::string& message)
      : Error(message), status_(status), field_(std::move(field)) {}

  int status() const { return status_; }
  const std::string& field() const { return field_; }
  /// {"error": {"status", "field", "message"}}.
  std::string json() const;

 private:
  int status_;
  std::string field_;
};

}  // namespace olrank
