#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/listener.h"

namespace olrank {

/// Finds the end of a request's head, byte by byte. RFC 9112 lets servers accept much that two parsers
/// could read in two ways; all of it is malformed here: lines that end in a bare LF, a CR without LF,
/// folded lines, empty lines before the request and control characters.
class HeadScanner {
 public:
  enum Result { kIncomplete, kComplete, kMalformed };
  /// Reads on with `bytes`; after kComplete, size() is the size of the head.
  Result scan(std::string_view bytes);
  std::size_t size() const { return size_; }

 private:
  enum State { kFirst, kText, kCarriageReturn, kLineStart, kLastCarriageReturn };
  State state_ = kFirst;
  std::size_t size_ = 0;
};

/// Whether the framing of a chunked body, which is text, has an LF without CR.
bool has_bare_line_feed(std::string_view text);

/// Request line and fields of a request. Messages of errors name fields in the form of the RFCs.
struct RequestHead {
  std::string method;
  std::string target;
  bool http11 = true;
  std::vector<std::pair<std::string, std::string>> fields;

  std::size_t count(std::string_view name) const;
  /// The field's first value; empty if there is none.
  std::string_view value(std::string_view name) const;
  /// The target without scheme, authority and query.
  std::string_view path() const;
  /// The authority of an absolute target (`http://authority/path`); empty for others.
  std::string_view authority() const;
  bool is_chunked() const { return count("Transfer-Encoding") > 0; }
  bool expects_continue() const;
};

/// The body's size; none for a chunked one. A request without Content-Length has none, too.
std::optional<std::size_t> content_length(const RequestHead& head);

/// Throws ApiError 400 if it is ambiguous where the body ends or which host is meant (RFC 9112,
/// sections 3.2, 6.1 and 6.3), and for a GET with a body; 414 for a long target, 417 for an unknown
/// expectation.
void check_framing(const RequestHead& head);

/// Throws ApiError 401 without the token. A service without one serves this machine's programs only: 403
/// for a web page's request, which has a foreign Host or Origin, and 415 for a body that does not call
/// itself JSON.
void check_access(const RequestHead& head, const HttpSettings& settings);

/// Throws ApiError 411 and 413 for the body of a POST, 415 if it is compressed. Without a length there is
/// no body, which is fine where none is needed.
void check_body(const RequestHead& head, const HttpSettings& settings, bool needs_body);

/// Health checks and the status page, which holds no data, need no token.
bool is_public(const RequestHead& head);

/// Whether If-None-Match names the tag, which is in quotes, or is *: the client has what it asks for.
bool has_tag(const RequestHead& head, std::string_view tag);

}  // namespace olrank
