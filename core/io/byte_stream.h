#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace olrank {

/// Compressed bytes that are cut off or damaged; the message is the sentence without a place.
class BrokenStream : public Error {
 public:
  using Error::Error;
};

/// Bytes that come one piece after the other.
class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Fills the start of `bytes` and returns how much of it; 0 only at the end.
  virtual std::size_t read(std::span<char> bytes) = 0;
};

enum class Compression { kNone, kGzip, kZstd };

/// What the first bytes of a file say: at least four of them where there are as many.
Compression compression_of(std::string_view first_bytes);
/// What a name ends in says: .gz, .zst or neither.
Compression compression_of_name(std::string_view name);

/// Where compressed bytes come from: gives the next piece, empty at the end; a piece stays valid until the
/// next call.
using ByteSource = std::function<std::string_view()>;

/// The bytes of memory that outlives the source, as one piece.
ByteSource memory_source(std::string_view bytes);
/// Reads an open descriptor, which it does not close; `name` is for messages.
ByteSource descriptor_source(int descriptor, std::string name);

/// Decompresses; gzip members and zstd frames that follow each other read as one. Throws BrokenStream.
std::unique_ptr<ByteStream> decompressed(ByteSource source, Compression compression);

/// `bytes` compressed as one gzip member or one zstd frame.
class Compressor {
 public:
  using Sink = std::function<void(std::string_view)>;
  virtual ~Compressor() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual void finish() = 0;

  static std::unique_ptr<Compressor> make(Compression compression, Sink sink);
};

}  // namespace olrank
