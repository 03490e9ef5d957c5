#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace olrank {

enum class ExitCode : int { kDone = 0, kFailed = 1, kWrongUsage = 2 };

/// Base class of all exceptions of olrank. A message is one or more sentences with values, names and what
/// to do next; it is printed unchanged.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::kFailed)
      : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// An invalid flag, setting or argument.
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message) : Error(message, ExitCode::kWrongUsage) {}
};

/// Malformed data. Line and column start at 1; 0 omits them from the message.
class DataError : public Error {
 public:
  DataError(const std::string& file, std::int64_t line, std::int64_t column, const std::string& sentence);
  std::int64_t line() const noexcept { return line_; }
  std::int64_t column() const noexcept { return column_; }

 private:
  std::int64_t line_;
  std::int64_t column_;
};

/// A file or folder that cannot be read or written.
class IoError : public Error {
 public:
  using Error::Error;
  /// `action` reads like "write"; `error_number` is errno's value at the failure.
  IoError(const std::string& action, const std::string& path, int error_number);
};

/// A computation that lost its accuracy, overflowed or became NaN.
class NumericError : public Error {
 public:
  using Error::Error;
};

/// A failed call of the CUDA runtime or its libraries.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// A GPU ran out of memory. Ends only the trial, like a NumericError.
class OutOfDeviceMemory : public CudaError {
 public:
  using CudaError::CudaError;
};

/// A GPU was requested in a build without CUDA.
class NotBuiltWithCuda : public Error {
 public:
  explicit NotBuiltWithCuda(const std::string& what);
};

/// The exit code of `olrank` if `error` reaches main.
ExitCode exit_code_of(const std::exception& error) noexcept;

}  // namespace olrank
