#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace olrank {

enum class ExitCode : int { kDone = 0, kFailed = 1, kWrongUsage = 2 };

/// The family of everything olrank throws. A message is one or more whole sentences with the values,
/// the names and what to do next; it is printed as it stands.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::kFailed)
      : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// A flag, setting or argument that cannot be used.
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message) : Error(message, ExitCode::kWrongUsage) {}
};

/// Data that breaks its format. Line and column count from 1; 0 leaves them out of the message.
class DataError : public Error {
 public:
  DataError(const std::string& file, std::int64_t line, std::int64_t column, const std::string& sentence);
  std::int64_t line() const noexcept { return line_; }
  std::int64_t column() const noexcept { return column_; }

 private:
  std::int64_t line_;
  std::int64_t column_;
};

/// A file or folder that the operating system did not let us read or write.
class IoError : public Error {
 public:
  using Error::Error;
  /// `action` reads like "write"; `error_number` is errno's value at the failure.
  IoError(const std::string& action, const std::string& path, int error_number);
};

/// A computation that left the numbers we can trust.
class NumericError : public Error {
 public:
  using Error::Error;
};

/// A failed call of the CUDA runtime or its libraries.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// What a GPU's memory could not hold: it ends its own trial, as a NumericError does.
class OutOfDeviceMemory : public CudaError {
 public:
  using CudaError::CudaError;
};

/// A GPU was asked for in a build without CUDA.
class NotBuiltWithCuda : public Error {
 public:
  explicit NotBuiltWithCuda(const std::string& what);
};

/// The exit code that `olrank` ends with when `error` reaches main.
ExitCode exit_code_of(const std::exception& error) noexcept;

}  // namespace olrank
