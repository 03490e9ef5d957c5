#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/interface.h"

namespace olrank {

/// Truncated or damaged compressed bytes. The message has no file name.
class BrokenStream : public Error {
 public:
  using Error::Error;
};

/// A stream of bytes.
class ByteStream : public Interface {
 public:
  /// Fills the beginning of `bytes` and returns the number of bytes read; 0 only at the end.
  virtual std::size_t read(std::span<char> bytes) = 0;
};

enum class Compression { kNone, kGzip, kZstd };

/// Detects compression from a file's first bytes: at least four, if the file has as many.
Compression compression_of(std::string_view first_bytes);
/// Compression by file name: .gz, .zst or none.
Compression compression_of_name(std::string_view name);

/// Throws DataError for a file whose name ends like compressed ones and whose first bytes are neither
/// compressed nor text: markup, which servers send in place of a missing file, is none. Content decides how
/// a file is read, so text passes.
void require_compression_of_name(const std::string& name, std::string_view first_bytes);

/// Source of compressed bytes: returns the next piece, or an empty one at the end. A piece is valid until
/// the next call.
using ByteSource = std::function<std::string_view()>;

/// The bytes of memory that outlives the source, as one piece.
ByteSource memory_source(std::string_view bytes);
/// Reads an open descriptor, which it does not close; `name` is for messages.
ByteSource descriptor_source(int descriptor, std::string name);

/// Decompresses; concatenated gzip members or zstd frames are read as one. Throws BrokenStream.
std::unique_ptr<ByteStream> decompressed(ByteSource source, Compression compression);

/// The bytes of an open descriptor, decompressed if their beginning says so; a `name` like those of
/// compressed files is held to it.
std::unique_ptr<ByteStream> descriptor_stream(int descriptor, const std::string& name);

/// `bytes` compressed as one gzip member or one zstd frame.
class Compressor {
 public:
  using Sink = std::function<void(std::string_view)>;
  virtual ~Compressor() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual void finish() = 0;

  static std::unique_ptr<Compressor> make(Compression compression, Sink sink);
};

/// One zstd frame, which says its size and has a checksum.
std::string zstd_frame(std::string_view bytes);
/// The content of such a frame. Throws BrokenStream.
std::string zstd_content(std::string_view frame);
/// The sizes of the frame at the beginning of the bytes: itself and its content; zeros if it is not whole.
struct ZstdSizes {
  std::size_t frame = 0;
  std::size_t content = 0;
};
ZstdSizes zstd_sizes(std::string_view bytes);

}  // namespace olrank
