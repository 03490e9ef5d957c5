#pragma once

#include <string>

#include "core/error.h"

namespace olrank {

/// A request that cannot be served: what the client gets instead of an answer.
class ApiError : public Error {
 public:
  /// `field` names the place in the request, "docs[3].features"; empty where there is none.
  ApiError(int status, std::string field, const std::string& sentence)
      : Error(sentence), status_(status), field_(std::move(field)) {}

  int status() const { return status_; }
  const std::string& field() const { return field_; }
  /// {"error": {"status", "field", "message"}}.
  std::string json() const;

 private:
  int status_;
  std::string field_;
};

}  // namespace olrank
