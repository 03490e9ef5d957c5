#include "olrank/c_api.h"
#include "core/throw_error.h"

#include <algorithm>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/settings/value.h"
#include "core/version.h"
#include "olrank/model.h"
#include "olrank/ranker.h"

struct olrank_model {
  olrank::Model model;
};

struct olrank_ranker {
  olrank::Ranker ranker;
};

namespace olrank {
namespace {

thread_local std::string latest_error;

/// The caller of olrank_ranker_rank() sees the base; the members own what it points to.
struct OwnedList : olrank_list {
  explicit OwnedList(ShownList of) : olrank_list{}, list(std::move(of)) {
    ranks = std::ssize(list.docs);
    docs = list.docs.data();
    propensity = list.propensity.empty() ? nullptr : list.propensity.data();
    all_docs = std::ssize(list.scores);
    scores = list.scores.data();
    for (const CertainPair& pair : list.certain) pairs.push_back({pair.first, pair.second});
    certain_pairs = std::ssize(pairs);
    certain = pairs.data();
  }
  ShownList list;
  std::vector<olrank_certain_pair> pairs;
};

olrank_status failed(olrank_status status, const char* sentence) noexcept {
  try {
    latest_error = sentence;
  } catch (...) {  // no memory for the sentence, either
    latest_error.clear();
  }
  return status;
}

/// Does what a caller in C asks for: no exception leaves.
template <class Action>
olrank_status answer(const Action& action) noexcept {
  try {
    action();
    return OLRANK_OK;
  } catch (const InvalidArgument& error) {
    return failed(OLRANK_INVALID_ARGUMENT, error.what());
  } catch (const DataError& error) {
    return failed(OLRANK_DATA_ERROR, error.what());
  } catch (const IoError& error) {
    return failed(OLRANK_IO_ERROR, error.what());
  } catch (const NumericError& error) {
    return failed(OLRANK_NUMERIC_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return failed(OLRANK_FAILED, "There is too little memory.");
  } catch (const std::length_error&) {
    return failed(OLRANK_FAILED, "There is too little memory.");
  } catch (const std::exception& error) {
    return failed(OLRANK_FAILED, error.what());
  } catch (...) {
    return failed(OLRANK_FAILED, "Something failed that has no description.");
  }
}

template <class T>
T& given(T* pointer, std::string_view name) {
  if (pointer == nullptr) throw_error<InvalidArgument>("{} is NULL.", name);
  return *pointer;
}

/// `rows` of `width` values.
template <class T>
std::span<T> rows_of(T* values, std::string_view name, std::int64_t rows, std::int64_t width = 1) {
  constexpr std::int64_t kMostValues = std::int64_t{1} << 60;
  if (rows < 0 || rows > kMostValues / width)
    throw_error<InvalidArgument>("{} cannot have {} rows.", name, rows);
  return {&given(values, name), static_cast<std::size_t>(rows * width)};
}

std::int64_t number_of(std::string_view key, std::string_view text, std::int64_t highest) {
  try {
    const auto number = std::get<std::int64_t>(parse_setting(SettingKind::kInteger, text));
    if (number >= 0 && number <= highest) return number;
  } catch (const InvalidArgument& error) {
    throw_error<InvalidArgument>("{} {}.", key, error.what());
  }
  throw_error<InvalidArgument>("{} must be 0 to {}, not {}.", key, highest, text);
}

RankerOptions ranker_options(std::int64_t features, const char* const* settings) {
  constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();
  RankerOptions options;
  options.features = features;
  for (; settings != nullptr && *settings != nullptr; settings += 2) {
    const std::string key = settings[0];
    if (settings[1] == nullptr) throw_error<InvalidArgument>("The setting '{}' has no value.", key);
    const std::string value = settings[1];
    if (key == "kind") {
      options.kind = value;
    } else if (key == "cutoff") {
      options.cutoff = number_of(key, value, kAnyNumber);
    } else if (key == "seed") {
      options.seed = number_of(key, value, kAnyNumber);
    } else if (key == "protocol") {
      options.protocol = value;
    } else if (key == "normalise") {
      options.normalise = value;
    } else if (key == "threads") {
      options.threads = static_cast<int>(number_of(key, value, std::numeric_limits<int>::max()));
    } else if (key == "device") {
      options.device = value;
    } else {
      options.settings[key] = value;
    }
  }
  return options;
}

}  // namespace
}  // namespace olrank

const char* olrank_last_error() {
  return olrank::latest_error.c_str();
}

const char* olrank_version() {
  return olrank::version().data();
}

olrank_status olrank_model_load(const char* file, int trust_code, olrank_model** model) {
  return olrank::answer([&] {
    olrank_model*& result = olrank::given(model, "model");
    result = new olrank_model{olrank::Model::load(&olrank::given(file, "file"), trust_code != 0)};
  });
}

olrank_status olrank_model_features(const olrank_model* model, int64_t* features) {
  return olrank::answer(
      [&] { olrank::given(features, "features") = olrank::given(model, "model").model.features(); });
}

olrank_status olrank_model_score(const olrank_model* model, const float* values, int64_t docs,
                                 const int64_t* offsets, int64_t queries, double* scores) {
  return olrank::answer([&] {
    const olrank::Model& scorer = olrank::given(model, "model").model;
    std::span<const std::int64_t> of_queries;
    if (offsets != nullptr || queries != 0) {
      olrank::rows_of(offsets, "offsets", queries);
      of_queries = {offsets, static_cast<std::size_t>(queries) + 1};
    }
    scorer.score_into(olrank::rows_of(values, "values", docs, scorer.features()), of_queries,
                      olrank::rows_of(scores, "scores", docs));
  });
}

void olrank_model_free(olrank_model* model) {
  delete model;
}

olrank_status olrank_ranker_create(int64_t features, const char* const* settings, olrank_ranker** ranker) {
  return olrank::answer([&] {
    olrank_ranker*& result = olrank::given(ranker, "ranker");
    result = new olrank_ranker{olrank::Ranker(olrank::ranker_options(features, settings))};
  });
}

olrank_status olrank_ranker_load(const char* file, int threads, int trust_code, const char* device,
                                 olrank_ranker** ranker) {
  return olrank::answer([&] {
    olrank_ranker*& result = olrank::given(ranker, "ranker");
    result = new olrank_ranker{olrank::Ranker::load(&olrank::given(file, "file"), threads, trust_code != 0,
                                                    device == nullptr ? "auto" : device)};
  });
}

olrank_status olrank_ranker_features(const olrank_ranker* ranker, int64_t* features) {
  return olrank::answer(
      [&] { olrank::given(features, "features") = olrank::given(ranker, "ranker").ranker.features(); });
}

olrank_status olrank_ranker_rank(olrank_ranker* ranker, const float* values, int64_t docs,
                                 const char* query, int64_t ranks, olrank_list** list) {
  return olrank::answer([&] {
    olrank::Ranker& asked = olrank::given(ranker, "ranker").ranker;
    olrank_list*& result = olrank::given(list, "list");
    result = new olrank::OwnedList(asked.rank(olrank::rows_of(values, "values", docs, asked.features()),
                                              query == nullptr ? "" : query, false, ranks));
  });
}

olrank_status olrank_ranker_learn(olrank_ranker* ranker, const olrank_list* list, const uint8_t* clicks,
                                  const double* rewards, int64_t ranks) {
  return olrank::answer([&] {
    const auto& shown = static_cast<const olrank::OwnedList&>(olrank::given(list, "list")).list;
    std::span<const double> worth;
    if (rewards != nullptr) worth = olrank::rows_of(rewards, "rewards", ranks);
    olrank::given(ranker, "ranker").ranker.learn(shown, olrank::rows_of(clicks, "clicks", ranks), worth);
  });
}

olrank_status olrank_ranker_score(olrank_ranker* ranker, const float* values, int64_t docs, float* scores) {
  return olrank::answer([&] {
    olrank::Ranker& asked = olrank::given(ranker, "ranker").ranker;
    const std::span<float> out = olrank::rows_of(scores, "scores", docs);
    std::ranges::copy(asked.score(olrank::rows_of(values, "values", docs, asked.features())), out.begin());
  });
}

olrank_status olrank_ranker_save(const olrank_ranker* ranker, const char* file) {
  return olrank::answer([&] { olrank::given(ranker, "ranker").ranker.save(&olrank::given(file, "file")); });
}

olrank_status olrank_ranker_save_model(const olrank_ranker* ranker, const char* file) {
  return olrank::answer(
      [&] { olrank::given(ranker, "ranker").ranker.save_model(&olrank::given(file, "file")); });
}

void olrank_list_free(olrank_list* list) {
  delete static_cast<olrank::OwnedList*>(list);
}

void olrank_ranker_free(olrank_ranker* ranker) {
  delete ranker;
}
