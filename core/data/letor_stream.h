#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/dataset.h"
#include "core/data/letor_reader.h"
#include "core/error.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// The documents of a query are not consecutive, so the text cannot be read as a stream.
class ScatteredQueries : public Error {
 public:
  using Error::Error;
};

/// Reads a regular file of LETOR lines, plain or compressed, as read_letor() does, but a piece at a time:
/// memory stays small however long the text is.
class LetorStream {
 public:
  /// Every piece is `features` wide: values not given are 0, and a larger feature number is a DataError.
  /// The options' limit is for one piece.
  LetorStream(const std::string& path, std::int64_t features, const LetorOptions& options,
              ThreadPool& pool);
  ~LetorStream();

  /// The next whole queries in the order of the text, without a fingerprint; nothing at the end. The piece
  /// does not depend on the stream, and where texts are cut does not depend on threads. Throws DataError
  /// for the first line that breaks the format, and ScatteredQueries for a query that comes back.
  std::optional<Dataset> next();
  /// Returns the largest feature of the pieces so far.
  std::int64_t largest_feature() const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

struct LetorFormat {
  /// Omit zeros, except one that preserves the number of features. Negative zeros are kept.
  bool sparse = false;
};

/// Writes LETOR lines to `sink`, piece by piece. Values have their shortest exact decimal form, so reading
/// the text gives the same data set.
void write_letor(const Dataset& data, const LetorFormat& format,
                 const std::function<void(std::string_view)>& sink);

}  // namespace olrank
