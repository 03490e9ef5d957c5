#include "sim/trace.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/curve.h"

namespace olrank {
namespace {

constexpr std::size_t kFlushBytes = 1 << 20;

template <class Numbers>
void append_list(std::string& text, const Numbers& numbers) {
  text += '[';
  bool first = true;
  for (const auto number : numbers) {
    if (!first) text += ',';
    first = false;
    // A float printed as a double, so that it reads back exactly in double precision.
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(number)>>) {
      text += json_number(static_cast<double>(number));
    } else {
      fmt::format_to(std::back_inserter(text), "{}", number);
    }
  }
  text += ']';
}

template <class Numbers>
void append_matrix(std::string& text, const Numbers& numbers, std::size_t columns) {
  text += '[';
  for (std::size_t begin = 0; begin < numbers.size(); begin += columns) {
    if (begin > 0) text += ',';
    append_list(text, std::span(numbers).subspan(begin, columns));
  }
  text += ']';
}

}  // namespace

Trace::Trace(const std::filesystem::path& path, bool detail, std::string_view config_json)
    : file_(path), detail_(detail) {
  buffer_ = fmt::format("{{\"config\":{}}}\n", config_json);
}

void Trace::write(const PlayedRound& round, std::string_view qid, const RoundDetail& rested_on) {
  buffer_ += fmt::format("{{\"round\":{},\"qid\":{},\"docs\":{},\"scores\":", round.round,
                         nlohmann::json(qid).dump(), rested_on.scores.size());
  append_list(buffer_, rested_on.scores);
  buffer_ += ",\"shown\":";
  append_list(buffer_, round.shown);
  buffer_ += ",\"clicks\":";
  append_list(buffer_, round.clicks);
  if (!round.propensity.empty()) {
    buffer_ += ",\"propensity\":";
    append_list(buffer_, round.propensity);
  }
  buffer_ += ",\"pairs\":[";
  for (std::size_t i = 0; i < round.learned.pairs.size(); ++i) {
    const auto& [winner, loser] = round.learned.pairs[i];
    buffer_ += fmt::format("{}[{},{}]", i > 0 ? "," : "", winner, loser);
  }
  buffer_ += fmt::format("],\"ndcg\":{}", json_number(round.ndcg));
  if (round.unfairness) {
    buffer_ += fmt::format(",\"unfairness\":{},\"groups\":\"", json_number(*round.unfairness));
    for (const DocGroup group : round.groups) buffer_ += letter_of(group);
    buffer_ += '"';
  }
  buffer_ += ",\"step\":";
  const auto steps = round.learned.steps;
  if (steps.empty()) {
    buffer_ += "null";
  } else if (steps.size() == 1) {
    buffer_ += json_number(steps.front());
  } else {
    append_list(buffer_, steps);
  }
  if (detail_) {
    const std::size_t docs = rested_on.scores.size();
    if (rested_on.theta.size() == 1) {
      buffer_ += ",\"theta\":";
      append_list(buffer_, rested_on.theta.front());
    } else if (!rested_on.theta.empty()) {
      buffer_ += ",\"thetas\":[";
      for (std::size_t member = 0; member < rested_on.theta.size(); ++member) {
        if (member > 0) buffer_ += ',';
        append_list(buffer_, rested_on.theta[member]);
      }
      buffer_ += ']';
    }
    if (!rested_on.width_sq.empty()) {
      buffer_ += ",\"width_sq\":";
      append_matrix(buffer_, rested_on.width_sq, docs);
    }
    if (!rested_on.probability.empty()) {
      buffer_ += ",\"probability\":";
      append_matrix(buffer_, rested_on.probability, docs);
    }
    if (!rested_on.certain.empty()) {
      buffer_ += ",\"certain\":";
      append_matrix(buffer_, rested_on.certain, docs);
    }
  }
  buffer_ += "}\n";
  if (buffer_.size() >= kFlushBytes) flush();
}

void Trace::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void Trace::close() {
  flush();
  file_.commit();
}

}  // namespace olrank
