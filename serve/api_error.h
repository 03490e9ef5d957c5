#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace olrank {

/// A rejected request, as the client sees it.
class ApiError : public Error {
 public:
  /// `field` names the offending part of the request, such as "docs[3].features"; empty if there is none.
  ApiError(int status, std::string field, const std::string& message)
      : Error(message), status_(status), field_(std::move(field)) {}

  /// Distinguishes errors of one status for programs; a name such as "being_written".
  ApiError&& with_code(std::string code) && {
    code_ = std::move(code);
    return std::move(*this);
  }
  /// A repeat of the request may succeed after so many seconds: the answer's Retry-After header.
  ApiError&& retry_after(int seconds) && {
    retry_after_ = seconds;
    return std::move(*this);
  }

  /// The methods that the path has: the answer's Allow header.
  ApiError&& allowing(std::string_view methods) && {
    allow_ = methods;
    return std::move(*this);
  }

  int status() const { return status_; }
  const std::string& field() const { return field_; }
  const std::string& code() const { return code_; }
  int retry_after() const { return retry_after_; }  // 0: do not retry
  const std::string& allow() const { return allow_; }
  /// {"error": {"status", "field", "message"}}, and "code" if the error has one.
  std::string json() const;

 private:
  int status_;
  std::string field_;
  std::string code_;
  int retry_after_ = 0;
  std::string allow_;
};

}  // namespace olrank
