#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/io/fingerprint.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "serve/http_server.h"
#include "serve/schema_change.h"

namespace olrank {
namespace {

constexpr std::string_view kPagePath = "/";
constexpr std::string_view kMetricsPath = "/metrics";
constexpr std::string_view kReadyPath = "/readyz";
constexpr std::string_view kHealthPath = "/healthz";
constexpr std::string_view kDocumentPath = "/v1/docs/{id}";
constexpr std::string_view kSchemaPath = "/v1/schema";

const std::vector<Route>& routes() {
  using R = Route;
  using S = Service;
  using Body = const std::string&;
  static constexpr std::string_view kBytes = "application/octet-stream";
  static const std::vector<Route> all = {
      {"POST", "/v1/rank", R::kComputing, [](S& s, Body b) { return s.rank(b); }, R::kNeedsBody},
      {"POST", "/v1/rerank", R::kComputing, [](S& s, Body b) { return s.rerank(b); }, R::kNeedsBody},
      {"POST", "/v1/feedback", R::kWaiting, [](S& s, Body b) { return s.feedback(b); }, R::kNeedsBody},
      {"PUT", "/v1/docs", R::kWaiting, [](S& s, Body b) { return s.put_documents(b); }, R::kNeedsBody},
      {"DELETE", "/v1/docs", R::kWaiting, [](S& s, Body b) { return s.delete_documents(b); },
       R::kNeedsBody},
      {"GET", kDocumentPath, R::kWaiting, [](S& s, Body id) { return s.document(id); }},
      {"DELETE", kDocumentPath, R::kWaiting, [](S& s, Body id) { return s.delete_document(id); }},
      {"GET", kSchemaPath, R::kWaiting, [](S& s, Body) { return s.schemas().json(); }},
      {"PUT", kSchemaPath, R::kWaiting, [](S& s, Body b) { return s.schemas().put(b, false); },
       R::kNeedsBody},
      {"POST", "/v1/checkpoint", R::kWaiting, [](S& s, Body) { return s.checkpoint(); }},
      {"GET", "/v1/overview", R::kWaiting, [](S& s, Body) { return s.overview(); }},
      {"GET", "/v1/features", R::kWaiting, [](S& s, Body) { return s.features(); }},
      {"GET", "/v1/arms", R::kWaiting, [](S& s, Body) { return s.arms(); }},
      {"GET", "/v1/stats", R::kWaiting, [](S& s, Body) { return s.stats(); }},
      {"GET", "/v1/model", R::kComputing, [](S& s, Body) { return s.model(); }, R::kNoBody, kBytes, true},
      {"GET", "/v1/snapshot", R::kWaiting, [](S& s, Body) { return s.snapshot(); }, R::kNoBody, kBytes,
       true, [](S& s) { return s.snapshot_tag(); }},
      {"GET", kMetricsPath, R::kWaiting, [](S& s, Body) { return s.metrics(); }, R::kNoBody,
       "text/plain; version=0.0.4"},
      {"GET", kReadyPath, R::kWaiting, [](S& s, Body) { return s.ready(); }},
      {"GET", kHealthPath, R::kNothing, [](S&, Body) { return "{\"alive\":true}\n"; }},
      {"GET", kPagePath, R::kNothing, [](S& s, Body) { return std::string(s.page().html); }, R::kNoBody,
       "text/html; charset=utf-8"},
  };
  return all;
}

std::string_view id_in(std::string_view path) {
  const std::string_view begin = kDocumentPath.substr(0, kDocumentPath.find('{'));
  return path.starts_with(begin) ? path.substr(begin.size()) : std::string_view();
}

/// The route of the path with this method, or the path's first one; null if no route has the path.
const Route* route_of(std::string_view path, std::string_view method = {}) {
  if (!id_in(path).empty()) path = kDocumentPath;
  const Route* first = nullptr;
  for (const Route& route : routes()) {
    if (route.path != path) continue;
    if (route.method == method) return &route;
    if (first == nullptr) first = &route;
  }
  return first;
}

/// The bytes of a document's ID in a path.
std::string decoded_id(std::string_view text) {
  std::string id;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '%') {
      const std::string_view digits = text.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (digits.size() < 2 || error != std::errc{} || end != digits.data() + 2)
        throw ApiError(400, "id", "After a % in the path come two hexadecimal digits.");
      i += 2;
    }
    id += static_cast<char>(byte);
  }
  return id;
}

/// Whether PUT /v1/schema?dry_run=true only plans.
bool is_dry_run(const RequestHead& head) {
  const std::size_t begin = std::min(head.target.find('?'), head.target.size());
  const std::string_view query = std::string_view(head.target).substr(begin);
  if (query.empty() || query == "?dry_run=false") return false;
  if (query == "?dry_run=true") return true;
  throw ApiError(422, "dry_run", "The query of this path may be dry_run=true, and nothing else.");
}

/// Answers by `make`, or says why it does not. Does not throw.
template <class Make>
Answer answer_of(const Route& route, const Make& make) {
  try {
    Answer answer;
    answer.type = route.type;
    make(answer);
    return answer;
  } catch (const ApiError& error) {
    return answer_rejection(error);
  } catch (const std::exception& error) {
    log_warning("{}: {}", route.path, error.what());
    return answer_rejection(ApiError(500, "", error.what()));
  }
}

/// The metrics of all surfaces: each sample with the label of its own, and those of the process once.
std::string metrics_of(std::span<const Surface> surfaces) {
  std::vector<std::pair<std::string, std::string>> families;  // headings and samples
  std::unordered_map<std::string, std::size_t> places;
  for (const Surface& surface : surfaces) {
    const auto visit = surface.service->visit();
    const std::string text = surface.service->metrics();
    std::size_t place = 0;
    bool is_new = false;
    bool is_of_process = false;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n') + 1);
      rest.remove_prefix(line.size());
      constexpr std::string_view kHelp = "# HELP ";
      if (line.starts_with(kHelp)) {
        const std::string name(line.substr(kHelp.size(), line.find(' ', kHelp.size()) - kHelp.size()));
        is_of_process = name.starts_with("process_") || name == "olrank_build_info";
        const auto [known, is_first] = places.try_emplace(name, families.size());
        if (is_first) families.emplace_back();
        place = known->second;
        is_new = is_first;
      }
      auto& [heading, samples] = families[place];
      const std::size_t end = line.find_first_of("{ ");
      if (line.starts_with('#')) {
        if (is_new) heading += line;
      } else if (!is_of_process) {
        samples += fmt::format("{}{{surface=\"{}\"{}{}", line.substr(0, end), surface.name,
                               line[end] == '{' ? "," : "}", line.substr(line[end] == '{' ? end + 1 : end));
      } else if (is_new) {
        samples += line;
      }
    }
  }
  std::string all;
  for (const auto& [heading, samples] : families) all += heading + samples;
  return all;
}

std::string links_to(std::span<const Surface> surfaces) {
  std::string links;
  for (const Surface& one : surfaces)
    links += fmt::format("<li><a href=\"{}{}/\">{}</a>", kSurface.substr(1), one.name, one.name);
  return fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\"><title>olrank</title><h1>Surfaces</h1><ul>{}</ul></html>\n",
      links);
}

}  // namespace

const Surface* take_surface(RequestHead& head, std::span<const Surface> surfaces) {
  std::string_view path = head.path();
  const std::size_t begin = path.empty() ? 0 : path.data() - head.target.data();
  std::string_view name;
  if (path.starts_with(kSurface)) {
    path.remove_prefix(kSurface.size());
    name = path.substr(0, path.find('/'));
  }
  const auto found =
      std::find_if(surfaces.begin(), surfaces.end(), [&](const Surface& one) { return one.name == name; });
  if (found == surfaces.end()) return nullptr;
  if (!name.empty()) head.target.erase(begin, kSurface.size() + name.size());
  return &*found;
}

const Route& find_route(const RequestHead& head, std::span<const Surface> surfaces, bool has_surface) {
  const std::string_view method = head.method == "HEAD" ? "GET" : std::string_view(head.method);
  const Route* route = route_of(head.path(), method);
  const bool is_for_all = route != nullptr && (route->path == kPagePath || route->path == kMetricsPath ||
                                               route->path == kReadyPath || route->path == kHealthPath);
  if (!has_surface && !is_for_all) {
    std::vector<std::string> names;
    for (const Surface& one : surfaces) {
      if (!one.name.empty()) names.push_back(one.name);
    }
    if (names.empty()) throw ApiError(404, "", "Unknown path.");
    throw ApiError(404, "",
                   fmt::format("Name a surface in the path, as in {}{}/v1/rank. The surfaces are {}.",
                               kSurface, names.back(), joined(names)));
  }
  if (route == nullptr) throw ApiError(404, "", "Unknown path.");
  if (method == route->method) return *route;
  std::vector<std::string> taken;
  std::string allowed;
  for (const Route& one : routes()) {
    if (one.path != route->path) continue;
    taken.emplace_back(one.method);
    allowed +=
        fmt::format("{}{}", allowed.empty() ? "" : ", ", one.method == "GET" ? "GET, HEAD" : one.method);
  }
  throw ApiError(405, "",
                 fmt::format("{} takes {}, not {}.", route->path, fmt::join(taken, " and "), head.method))
      .allowing(allowed);
}

std::string_view known_path(std::string_view path) {
  const Route* route = route_of(path);
  return route != nullptr ? route->path : "other";
}

Answer answer_request(const Route& route, Service& service, const RequestHead& head,
                      const std::string& body) {
  return answer_of(route, [&](Answer& answer) {
    // While health and page are answered at once, a change of the schema waits for the others.
    const auto visit = route.cost == Route::kNothing ? Service::Visit() : service.visit();
    const bool has_id = route.path == kDocumentPath;
    if (route.path == kSchemaPath && route.method == "PUT" && is_dry_run(head)) {
      answer.body = service.schemas().put(body, true);
      return;
    }
    if (route.path == kPagePath) answer.policy = service.page().policy;
    if (route.tag != nullptr) answer.tag = fmt::format("\"{}\"", route.tag(service));
    if (answer.tag.empty() || !has_tag(head, answer.tag))
      answer.body = route.answer(service, has_id ? decoded_id(id_in(head.path())) : body);
    if (!route.is_file) return;
    if (answer.tag.empty()) answer.tag = fmt::format("\"{}\"", fingerprint_of(answer.body).hex());
    if (!has_tag(head, answer.tag)) return;
    answer.status = 304;
    answer.body.clear();
  });
}

Answer answer_for_all(const Route& route, std::span<const Surface> surfaces, bool names_them) {
  return answer_of(route, [&](Answer& answer) {
    if (route.path == kPagePath) {
      answer.policy = "default-src 'none'";
      answer.body = links_to(names_them ? surfaces : std::span<const Surface>());
    } else if (route.path == kMetricsPath) {
      answer.body = metrics_of(surfaces);
    } else {
      for (const Surface& one : surfaces) {
        const auto visit = route.cost == Route::kNothing ? Service::Visit() : one.service->visit();
        answer.body = route.answer(*one.service, "");  // each is alive, or ready
      }
    }
  });
}

Answer answer_rejection(const ApiError& error) {
  Answer answer;
  answer.status = error.status();
  answer.allow = error.allow();
  answer.retry_after = error.status() == 503 ? std::max(1, error.retry_after()) : error.retry_after();
  answer.body = error.json();
  return answer;
}

}  // namespace olrank
