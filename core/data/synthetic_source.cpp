#include "core/data/synthetic_source.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "core/math/dcg.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::string_view kScheme = "synth:";

SyntheticSource defaults_of(SyntheticFamily family) {
  struct Size {
    std::int64_t queries;
    std::int64_t docs;
    std::int64_t features;
  };
  constexpr Size kSizes[] = {{1000, 120, 136}, {1000, 24, 700}, {40, 10, 10}, {20, 4, 3}};
  const Size& size = kSizes[static_cast<std::size_t>(family)];
  SyntheticSource source;
  source.family = family;
  source.queries = size.queries;
  source.docs = size.docs;
  source.features = size.features;
  source.noise = 0.8;
  source.nonlinearity = 0.5;
  return source;
}

/// A fifth of the training queries, but enough for a mean over them to say something.
std::int64_t default_test_queries(const SyntheticSource& source) {
  const bool small = source.family == SyntheticFamily::kSmall || source.is_realisable();
  const std::int64_t least = small ? 20 : 250;
  return std::max(source.queries / 5, least);
}

template <class T>
T number(std::string_view key, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Written so that NaN fails.
  const bool inside = value >= least && value <= most;
  if (error != std::errc() || end != text.data() + text.size() || !inside) {
    throw_error<InvalidArgument>("The key '{}' of a synthetic source must be {} from {} to {}, not '{}'.",
                                 key, std::is_integral_v<T> ? "an integer" : "a number", least, most, text);
  }
  return value;
}

void set(SyntheticSource& source, std::string_view key, std::string_view value) {
  constexpr std::int64_t kMostQueries = 10'000'000;
  constexpr std::int64_t kMostDocs = 100'000;
  constexpr std::int64_t kMostFeatures = 100'000;
  constexpr std::int64_t kMostUnits = 1'000;
  constexpr std::int64_t kMostNumbers = 10'000;  // of a vector
  const bool realisable = source.is_realisable();
  const auto assign = [&](auto& target, auto least, auto most) {
    target = number<std::decay_t<decltype(target)>>(key, value, least, most);
  };
  if (key == "queries") return assign(source.queries, 1, kMostQueries);
  if (key == "test_queries") return assign(source.test_queries, 1, kMostQueries);
  if (key == "docs" && realisable) return assign(source.docs, 2, kHighestGrade + 1);
  if (key == "docs") return assign(source.docs, 1, kMostDocs);
  if (key == "features") return assign(source.features, realisable ? 2 : 10, kMostFeatures);
  if (key == "seed") return assign(source.seed, 0, UINT64_MAX);
  std::vector<std::string> known = {"queries", "test_queries", "docs", "features", "seed"};
  if (realisable) {
    if (key == "gap") return assign(source.gap, 0.001, 10.0);
    if (key == "units") {
      assign(source.units, 0, kMostUnits);
      if (source.units != 1) return;
      // One unit has no negative values.
      throw InvalidArgument("The key 'units' of synth:realisable must be 0 or at least 2, not 1.");
    }
    known.insert(known.end(), {"units", "gap"});
  } else {
    if (key == "noise") return assign(source.noise, 0.0, 100.0);
    if (key == "nonlinearity") return assign(source.nonlinearity, 0.0, 1.0);
    if (key == "group_share") return assign(source.group_share, 0.01, 0.99);
    if (key == "group_gap") return assign(source.group_gap, -4.0, 4.0);
    if (key == "embedding") return assign(source.embedding, 2, kMostNumbers);
    if (key == "subspace") return assign(source.subspace, 1, kMostNumbers);
    if (key == "projection") return void(source.projection = number<std::int64_t>(key, value, 0, 1) == 1);
    known.insert(known.end(), {"noise", "nonlinearity", "group_share", "group_gap", "embedding", "subspace",
                               "projection"});
  }
  throw_error<InvalidArgument>("Unknown key '{}' of synth:{}. {} The keys are {}.", key,
                               name_of(source.family), did_you_mean(key, known), joined(known));
}

SyntheticFamily family_named(std::string_view name) {
  if (const auto family = value_named<SyntheticFamily>(name)) return *family;
  std::vector<std::string> known;
  known.reserve(EnumNames<SyntheticFamily>::values.size());
  for (const auto& entry : EnumNames<SyntheticFamily>::values) known.emplace_back(entry.second);
  throw_error<InvalidArgument>("Unknown synthetic data set '{}'. {} The data sets are {}.", name,
                               did_you_mean(name, known), joined(known));
}

}  // namespace

bool is_synthetic(std::string_view source) {
  return source.starts_with(kScheme);
}

SyntheticSource parse_synthetic_source(std::string_view text) {
  if (!is_synthetic(text)) {
    throw_error<InvalidArgument>(
        "A synthetic source must have the form synth:NAME?key=value&key=value, not '{}'.", text);
  }
  const std::string_view rest = text.substr(kScheme.size());
  const std::size_t question = rest.find('?');
  SyntheticSource source = defaults_of(family_named(rest.substr(0, question)));
  std::string_view settings = question == std::string_view::npos ? "" : rest.substr(question + 1);
  std::vector<std::string_view> seen;
  const auto is_set = [&](std::string_view key) {
    return std::find(seen.begin(), seen.end(), key) != seen.end();
  };
  while (!settings.empty()) {
    const std::size_t ampersand = settings.find('&');
    const std::string_view setting = settings.substr(0, ampersand);
    settings = ampersand == std::string_view::npos ? "" : settings.substr(ampersand + 1);
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos) {
      throw_error<InvalidArgument>("'{}' in '{}' must have the form key=value.", setting, text);
    }
    const std::string_view key = setting.substr(0, equals);
    set(source, key, setting.substr(equals + 1));
    if (is_set(key)) {
      throw_error<InvalidArgument>("'{}' sets the key '{}' twice. Remove one of them.", text, key);
    }
    seen.push_back(key);
  }
  if (source.group_gap != 0.0 && !source.has_groups())
    throw_error<InvalidArgument>("'{}' sets group_gap but no groups: set group_share, too.", text);
  if (!source.has_embedding() && (is_set("subspace") || is_set("projection")))
    throw_error<InvalidArgument>("'{}' sets subspace or projection but no vector: set embedding, too.",
                                 text);
  if (source.has_embedding() && source.subspace > source.embedding) {
    throw_error<InvalidArgument>("'{}' has a subspace of {} directions in a vector of {}: lower subspace.",
                                 text, source.subspace, source.embedding);
  }
  if (source.test_queries == 0) source.test_queries = default_test_queries(source);
  return source;
}

}  // namespace olrank
