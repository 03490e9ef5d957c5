#include "serve/feature_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

struct SchemaTop {
  std::vector<std::string> drop;

  static const Schema& schema() {
    static const Schema schema =
        SchemaBuilder<SchemaTop>("", "What the schema says of all features.")
            .field("drop", &SchemaTop::drop, "features of earlier lists that the model leaves out")
            .build();
    return schema;
  }
};

/// The columns of one feature.
std::vector<std::string> columns_of(const SchemaFeature& feature, const std::string& name) {
  std::vector<std::string> columns;
  if (!feature.input || feature.query) return columns;
  if (feature.is_number()) return {name};
  for (const std::string& value : feature.values) columns.push_back(fmt::format("{}={}", name, value));
  for (std::int64_t place = 0; place < feature.length; ++place)
    columns.push_back(fmt::format("{}[{}]", name, place));
  return columns;
}

/// How the feature's values come about, whatever it is called.
std::string definition(SchemaFeature feature, const NamedInputs& names) {
  feature.name = feature.from.empty() ? "" : names.present_name(feature.from);
  feature.from.clear();
  for (std::string& vector : feature.dot) vector = names.present_name(vector);
  feature.missing = 0.0;
  feature.values.clear();
  feature.input = true;
  feature.limit = SchemaFeature::kEntries;
  feature.was.clear();
  return print_settings(SchemaFeature::schema(), &feature);
}

/// `refuse` throws with a sentence.
template <class Refuse>
void check_counter(const SchemaFeature& feature, const Refuse& refuse) {
  using F = SchemaFeature;
  const std::string& name = feature.name;
  static const F plain;
  if (feature.kind != FeatureKind::kCounter) {
    if (!feature.of.empty() || feature.by != plain.by || feature.half_life || !feature.prior.empty() ||
        feature.limit != plain.limit)
      refuse(fmt::format(
          "Feature '{}' is no counter: of, by, half_life, prior and limit need kind = \"counter\".", name));
    return;
  }
  const bool is_rate = feature.of == F::kClickRate;
  if (!is_rate && feature.of != F::kClicks && feature.of != F::kViews && feature.of != F::kAge)
    refuse(fmt::format("Counter '{}' is of '{}', which a log does not tell: of is {}, {}, {} or {}.", name,
                       excerpt(feature.of), F::kClickRate, F::kClicks, F::kViews, F::kAge));
  if (feature.by != F::kByDocument && feature.by != F::kByQuery)
    refuse(fmt::format("by of '{}' must be {} or {}, not '{}'.", name, F::kByDocument, F::kByQuery,
                       excerpt(feature.by)));
  if (feature.missing != 0.0)
    refuse(fmt::format("Counter '{}' has no default: a document without views has the prior.", name));
  if (feature.half_life && !(*feature.half_life > 0.0))
    refuse(
        fmt::format("half_life of '{}' must be a number of days above 0, not {}; without it nothing fades.",
                    name, *feature.half_life));
  if (!is_rate && !feature.prior.empty())
    refuse(fmt::format("Counter '{}' has a prior, which only a {} has.", name, F::kClickRate));
  if (feature.half_life && feature.of == F::kAge)
    refuse(fmt::format("Counter '{}' is an age, which has no half_life.", name));
  const std::vector<double> prior = feature.prior_or_default();
  if (prior.size() != 2 || !(prior[0] >= 0.0 && prior[1] > 0.0))
    refuse(
        fmt::format("prior of '{}' must be clicks of at least 0 and views above 0, as in prior = [1, 10], "
                    "not [{}].",
                    name, fmt::join(prior, ", ")));
}

}  // namespace

const Schema& SchemaFeature::schema() {
  using F = SchemaFeature;
  static const Schema schema =
      SchemaBuilder<F>("feature", "A feature of a service.")
          .field("name", &F::name, "its name in requests, logs and models")
          .field("kind", &F::kind, "what requests send")
          .field("default", &F::missing, "value of a document that lacks it")
          .field("values", &F::values, "the values of a category")
          .field("length", &F::length, "numbers of a vector", {0, 10'000})
          .field("query", &F::query, "whether the vector comes with the query")
          .field("input", &F::input, "whether the model gets it")
          .field("from", &F::from, "the feature that this one transforms")
          .field("dot", &F::dot, "a vector of the query and one of the document")
          .field("clip", &F::clip, "lowest and highest value")
          .field("log1p", &F::log1p, "whether the logarithm of one more is taken")
          .field("of", &F::of, "what a counter tells")
          .field("by", &F::by, "whether it counts by document or by query")
          .field("half_life", &F::half_life, "days in which a count halves")
          .field("prior", &F::prior, "clicks and views that all begin with")
          .field("limit", &F::limit, "entries that a counter remembers", {1, 1'000'000'000})
          .field("was", &F::was, "earlier names")
          .repeated()
          .build();
  return schema;
}

FeatureSchema FeatureSchema::parse(std::string_view toml, const std::string& origin) {
  FeatureSchema schema;
  std::vector<std::string> origins;
  for (const TomlDocument::Table& table : parse_toml(toml, origin).tables) {
    if (table.name.empty()) {
      SchemaTop top;
      SettingSources::apply_table(SchemaTop::schema(), &top, table);
      schema.dropped_ = std::move(top.drop);
    } else if (table.name == SchemaFeature::schema().table && table.repeated) {
      SettingSources::apply_table(SchemaFeature::schema(), &schema.features_.emplace_back(), table);
      origins.push_back(table.origin);
    } else {
      throw_error<InvalidArgument>("{}: A schema has tables [[feature]] alone, and no '{}'.", table.origin,
                                   table.name);
    }
  }
  if (schema.features_.empty())
    throw_error<InvalidArgument>("{}: The schema has no feature: write one [[feature]] for each.", origin);
  for (std::size_t i = 0; i < origins.size(); ++i) schema.index_.emplace(schema.features_[i].name, i);
  for (std::size_t i = 0; i < origins.size(); ++i) {
    schema.check(schema.features_[i], origins[i]);
    const SchemaFeature* first = schema.any(schema.features_[i].name);
    if (first != &schema.features_[i])
      throw_error<InvalidArgument>("{}: The schema has the feature '{}' twice.", origins[i], first->name);
  }
  std::unordered_map<std::string, std::size_t> earlier;
  for (std::size_t i = 0; i < origins.size(); ++i) {
    for (const std::string& was : schema.features_[i].was) {
      if (const std::size_t first = earlier.emplace(was, i).first->second; first != i)
        throw_error<InvalidArgument>("{}: '{}' is an earlier name of '{}' and of '{}': it was one of them.",
                                     origins[i], was, schema.features_[first].name,
                                     schema.features_[i].name);
      if (schema.any(was) != nullptr)
        throw_error<InvalidArgument>(
            "{}: '{}' is an earlier name of '{}' and a feature as well: give one of "
            "them another name.",
            origins[i], was, schema.features_[i].name);
    }
  }
  schema.order(origins);
  schema.add_columns();
  NamedInputs drop;
  drop.dropped = schema.dropped_;
  for (const std::string& column : schema.columns_) {
    if (drop.drops(column))
      throw_error<InvalidArgument>(
          "{}: '{}' is an input of the model, but drop leaves it out: remove one of "
          "them.",
          origin, column);
  }
  if (schema.columns_.empty())
    throw_error<InvalidArgument>("{}: The schema has no feature that is an input of the model.", origin);
  return schema;
}

void FeatureSchema::check(const SchemaFeature& feature, const std::string& origin) const {
  const std::string& name = feature.name;
  const auto refuse = [&origin](const std::string& sentence) {
    throw InvalidArgument(fmt::format("{}: {}", origin, sentence));
  };
  if (name.empty()) refuse("The feature has no name.");
  if (name.find_first_of("=[],\n") != std::string::npos || name.starts_with('-') ||
      name.find_first_not_of("0123456789") == std::string::npos)
    refuse(
        fmt::format("'{}' is no name of a feature: a name is no number, does not begin with - and has none "
                    "of = [ ] and comma.",
                    excerpt(name)));
  const bool category = feature.kind == FeatureKind::kCategory;
  const bool vector = feature.kind == FeatureKind::kVector;
  if (category && feature.values.empty())
    refuse(fmt::format("Category '{}' needs its values: values = [\"red\", \"blue\"].", name));
  if (!category && !feature.values.empty())
    refuse(fmt::format("Feature '{}' has values, which only a category has.", name));
  if (vector && feature.length == 0) refuse(fmt::format("Vector '{}' needs its length.", name));
  if (!vector && feature.length > 0)
    refuse(fmt::format("Feature '{}' has a length, which only a vector has.", name));
  if (feature.query && !vector)
    refuse(
        fmt::format("Feature '{}' is one of the query, as only vectors may be: the same number for all "
                    "documents orders none.",
                    name));
  std::vector<std::string> values = feature.values;
  std::sort(values.begin(), values.end());
  if (std::adjacent_find(values.begin(), values.end()) != values.end())
    refuse(fmt::format("Category '{}' has the value '{}' twice.", name,
                       *std::adjacent_find(values.begin(), values.end())));
  if ((category || vector) && (!feature.clip.empty() || feature.log1p || feature.missing != 0.0))
    refuse(fmt::format("'{}' has no single number: clip, log1p and default do not fit a {}.", name,
                       name_of(feature.kind)));
  if (feature.is_computed() && (feature.kind != FeatureKind::kNumber || feature.missing != 0.0))
    refuse(fmt::format("Feature '{}' is computed, so it is of kind number and has no default of its own.",
                       name));
  if (!feature.from.empty() && !feature.dot.empty())
    refuse(fmt::format("Feature '{}' has both from and dot: take one of them.", name));
  if (!feature.clip.empty() && (feature.clip.size() != 2 || !(feature.clip[0] < feature.clip[1])))
    refuse(
        fmt::format("clip of '{}' must be the lowest and the highest value, as in clip = [0, 100].", name));
  if (!std::isfinite(static_cast<float>(feature.missing)))
    refuse(fmt::format("The default of '{}' is out of range for a 32-bit float.", name));
  check_counter(feature, refuse);
  std::vector<std::string> others = feature.dot;
  if (!feature.from.empty()) others.push_back(feature.from);
  for (const std::string& other : others) {
    if (any(other) == nullptr)
      refuse(
          fmt::format("Feature '{}' is computed from '{}', which the schema lacks.", name, excerpt(other)));
  }
  if (!feature.from.empty() && !any(feature.from)->is_number())
    refuse(fmt::format("Feature '{}' transforms '{}', which has no single number.", name, feature.from));
  if (feature.dot.empty()) return;
  const bool pair = feature.dot.size() == 2 && any(feature.dot[0])->query &&
                    any(feature.dot[1])->kind == FeatureKind::kVector && !any(feature.dot[1])->query;
  if (!pair)
    refuse(fmt::format("dot of '{}' must name a vector with query = true and then one of the document.",
                       name));
  if (any(feature.dot[0])->length != any(feature.dot[1])->length)
    refuse(fmt::format("dot of '{}' needs vectors of one length, but '{}' has {} numbers and '{}' {}.",
                       name, feature.dot[0], any(feature.dot[0])->length, feature.dot[1],
                       any(feature.dot[1])->length));
}

/// Features come after those that they are computed from.
void FeatureSchema::order(const std::vector<std::string>& origins) {
  for (std::size_t i = 0; i < features_.size(); ++i) {
    std::vector<std::size_t> chain = {i};
    while (!features_[chain.back()].from.empty()) {
      const auto next = static_cast<std::size_t>(any(features_[chain.back()].from) - features_.data());
      if (std::find(chain.begin(), chain.end(), next) != chain.end())
        throw_error<InvalidArgument>("{}: Feature '{}' is computed from itself, by way of '{}'.",
                                     origins[i], features_[next].name, features_[chain.back()].name);
      chain.push_back(next);
    }
    for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
      if (std::find(computed_.begin(), computed_.end(), *one) == computed_.end()) computed_.push_back(*one);
    }
  }
}

void FeatureSchema::add_columns() {
  for (const SchemaFeature& feature : features_) {
    for (std::string& column : columns_of(feature, feature.name)) columns_.push_back(std::move(column));
    std::vector<float>& row = empty_[feature.query ? 1 : 0];
    places_.push_back(feature.is_computed() ? -1 : std::ssize(row));
    if (feature.is_computed()) continue;
    const bool vector = feature.kind == FeatureKind::kVector;
    float missing = feature.kind == FeatureKind::kCategory ? -1.0F : static_cast<float>(feature.missing);
    if (feature.of == SchemaFeature::kClickRate)
      missing = static_cast<float>(feature.prior_or_default()[0] / feature.prior_or_default()[1]);
    row.insert(row.end(), vector ? feature.length : 1, missing);
  }
}

const SchemaFeature* FeatureSchema::any(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &features_[found->second];
}

const SchemaFeature* FeatureSchema::find(const std::string& name, bool of_query) const {
  const SchemaFeature* found = any(name);
  return found == nullptr || !found->is_sent() || found->query != of_query ? nullptr : found;
}

const SchemaFeature* FeatureSchema::find_earlier(const std::string& name, bool of_query) const {
  for (const SchemaFeature& feature : features_) {
    if (std::find(feature.was.begin(), feature.was.end(), name) != feature.was.end())
      return find(feature.name, of_query);
  }
  return nullptr;
}

bool FeatureSchema::drops(const std::string& name) const {
  return std::find(dropped_.begin(), dropped_.end(), name) != dropped_.end();
}

void FeatureSchema::convert(const FeatureSchema& before, std::vector<float>& row,
                            std::vector<std::int64_t>& times, std::vector<float>& columns) const {
  std::vector<float> converted = empty_row(false);
  std::vector<std::int64_t> converted_times;
  for (const SchemaFeature& feature : features_) {
    if (!feature.is_sent() || feature.query) continue;
    const SchemaFeature* same = before.find(feature.name, false);
    for (const std::string& was : feature.was) same = same == nullptr ? before.find(was, false) : same;
    if (same == nullptr || same->kind != feature.kind || same->length != feature.length) continue;
    const std::int64_t from = before.place(*same);
    const std::int64_t to = place(feature);
    std::copy_n(row.begin() + from, std::max<std::int64_t>(feature.length, 1), converted.begin() + to);
    if (feature.kind == FeatureKind::kCategory && row[from] >= 0.0F) {
      const auto& value = same->values[static_cast<std::size_t>(row[from])];
      const auto known = std::find(feature.values.begin(), feature.values.end(), value);
      converted[to] =
          known == feature.values.end() ? -1.0F : static_cast<float>(known - feature.values.begin());
    }
    for (std::size_t time = 0; time + 1 < times.size(); time += 2) {
      if (times[time] == from) converted_times.insert(converted_times.end(), {to, times[time + 1]});
    }
    if (feature.kind == FeatureKind::kTime) converted[to] = empty_row(false)[to];
  }
  row = std::move(converted);
  times = std::move(converted_times);
  columns.resize(columns_.size());
  compute(empty_row(true).data(), row.data(), columns.data());
}

std::vector<std::string> FeatureSchema::fields(bool of_query) const {
  std::vector<std::string> names;
  for (const SchemaFeature& feature : features_) {
    if (feature.is_sent() && feature.query == of_query) names.push_back(feature.name);
  }
  return names;
}

bool FeatureSchema::has_counters() const {
  return std::any_of(features_.begin(), features_.end(),
                     [](const SchemaFeature& feature) { return feature.kind == FeatureKind::kCounter; });
}

bool FeatureSchema::takes_numbers() const {
  return std::all_of(features_.begin(), features_.end(), [](const SchemaFeature& feature) {
    return feature.kind == FeatureKind::kCounter ||
           (feature.kind == FeatureKind::kNumber && feature.input && !feature.is_computed());
  });
}

void FeatureSchema::compute(const float* query, const float* doc, float* columns) const {
  std::vector<float> values(features_.size());
  for (const std::size_t i : computed_) {
    const SchemaFeature& feature = features_[i];
    if (!feature.is_number()) continue;
    double value = 0.0;
    if (!feature.dot.empty()) {
      const SchemaFeature& first = *any(feature.dot[0]);
      const float* a = query + place(first);
      const float* b = doc + place(*any(feature.dot[1]));
      for (std::int64_t k = 0; k < first.length; ++k) value += double{a[k]} * double{b[k]};
    } else if (!feature.from.empty()) {
      value = values[any(feature.from) - features_.data()];
    } else {
      value = doc[places_[i]];
    }
    if (!feature.clip.empty()) value = std::clamp(value, feature.clip[0], feature.clip[1]);
    if (feature.log1p) value = std::copysign(std::log1p(std::abs(value)), value);
    values[i] = static_cast<float>(value);
  }
  for (std::size_t i = 0; i < features_.size(); ++i) {
    const SchemaFeature& feature = features_[i];
    if (!feature.input || feature.query) continue;
    if (feature.is_number()) *columns++ = values[i];
    for (std::int64_t value = 0; value < std::ssize(feature.values); ++value)
      *columns++ = doc[places_[i]] == static_cast<float>(value) ? 1.0F : 0.0F;
    if (feature.length > 0) columns = std::copy_n(doc + places_[i], feature.length, columns);
  }
}

std::string FeatureSchema::fields_json(const std::vector<float>& row,
                                       const std::vector<std::int64_t>& times) const {
  std::string out;
  for (std::size_t i = 0; i < features_.size(); ++i) {
    const SchemaFeature& feature = features_[i];
    if (!feature.is_sent() || feature.query) continue;
    const float* value = row.data() + places_[i];
    std::string text = fmt::format("{}", *value);
    if (feature.kind == FeatureKind::kVector) {
      text = fmt::format("[{}]", fmt::join(value, value + feature.length, ","));
    } else if (feature.kind == FeatureKind::kCategory) {
      if (*value < 0.0F) continue;
      text = json_string(feature.values[static_cast<std::size_t>(*value)]);
    } else if (feature.kind == FeatureKind::kTime) {
      text.clear();
      for (std::size_t time = 0; time + 1 < times.size(); time += 2) {
        if (times[time] == places_[i]) text = fmt::format("{}", times[time + 1]);
      }
      if (text.empty()) continue;
    }
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", json_string(feature.name), text);
  }
  return "{" + out + "}";
}

std::vector<float> FeatureSchema::columns_without_fields() const {
  std::vector<float> columns(columns_.size());
  compute(empty_[1].data(), empty_[0].data(), columns.data());
  return columns;
}

std::string FeatureSchema::text() const {
  std::string text;
  if (!dropped_.empty()) text = fmt::format("drop = {}\n\n", to_toml(dropped_));
  static const SchemaFeature plain;
  for (const SchemaFeature& feature : features_) {
    text += print_settings(SchemaFeature::schema(), &feature, [&feature](const Setting& setting) {
      return to_toml(setting.read(&feature)) != to_toml(setting.read(&plain));
    });
  }
  return text;
}

std::string FeatureSchema::digest() const {
  return fingerprint_of(text()).hex();
}

NamedInputs FeatureSchema::named_columns() const {
  NamedInputs inputs{columns_, columns_without_fields(), dropped_};
  for (const SchemaFeature& feature : features_) {
    const std::vector<std::string> now = columns_of(feature, feature.name);
    for (const std::string& was : feature.was) {
      inputs.renamed.emplace_back(was, feature.name);
      const std::vector<std::string> before = columns_of(feature, was);
      for (std::size_t i = 0; i < now.size(); ++i) {
        if (before[i] != was) inputs.renamed.emplace_back(before[i], now[i]);
      }
    }
  }
  inputs.advice = "add it to the schema, give its new name there with was, or list it under drop";
  return inputs;
}

std::string schema_change(const std::vector<std::string>& names_before, const FeatureSchema* before,
                          const FeatureSchema& after) {
  const NamedInputs names = after.named_columns();
  std::vector<std::string> kept;
  std::vector<std::string> renamed;
  std::vector<std::string> dropped;
  std::vector<std::string> added;
  for (const std::string& name : names_before) {
    const std::string now = names.present_name(name);
    if (std::find(names.names.begin(), names.names.end(), now) != names.names.end()) {
      kept.push_back(now);
      if (now != name) renamed.push_back(fmt::format("{} to {}", name, now));
    } else if (names.drops(name)) {
      dropped.push_back(name);
    } else {
      throw_error<InvalidArgument>("--schema: The log has the feature '{}', which the schema lacks: {}.",
                                   name, names.advice);
    }
  }
  const std::vector<std::string> gone =
      before == nullptr ? std::vector<std::string>() : before->named_columns().dropped;
  for (const std::string& name : gone) {
    if (names.drops(name)) continue;
    throw_error<InvalidArgument>(
        "--schema: Earlier lists have the feature '{}', which was left out: keep it under drop, and give a "
        "new feature another name.",
        name);
  }
  for (const std::string& name : names.names) {
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) added.push_back(name);
  }
  std::vector<SchemaFeature> features;
  if (before != nullptr) features = before->features();
  for (std::size_t i = 0; before == nullptr && i < names_before.size(); ++i)
    features.emplace_back().name = names_before[i];
  for (const SchemaFeature& feature : features) {
    const std::string now = names.present_name(feature.name);
    const auto found = std::find_if(after.features().begin(), after.features().end(),
                                    [&now](const SchemaFeature& one) { return one.name == now; });
    if (found == after.features().end() || definition(feature, names) == definition(*found, {})) continue;
    throw_error<InvalidArgument>(
        "--schema: '{}' is computed in another way than in the log, which has only its values: give the "
        "feature another name, and list '{}' under drop.",
        now, feature.name);
  }
  std::string text;
  for (const auto& [verb, which] :
       {std::pair("adds", &added), {"renames", &renamed}, {"drops", &dropped}}) {
    if (!which->empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", verb, joined(*which));
  }
  return text.empty() ? "keeps its columns" : text;
}

}  // namespace olrank
