#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Names that become part of a file's name, of a path or of a metric's label have these letters.
inline constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
/// Whether these are up to 40 such letters.
inline bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 40 && name.find_first_not_of(kNameLetters) == std::string::npos;
}

/// Who decides how much traffic the learner gets.
enum class Promotion { kManual, kAuto };

template <>
struct EnumNames<Promotion> {
  static constexpr std::array values = names_in_order<Promotion>("manual", "auto");
};

/// The rankers whose lists a service shows, with their shares of the traffic: the learner, the order that
/// requests bring (the incumbent), and models. With `interleave` each list is drafted from two of them.
struct ArmPlan {
  static constexpr std::string_view kLearner = FeedbackRecord::kLearnerArm;
  static constexpr std::string_view kIncumbent = "incumbent";
  static constexpr std::string_view kDrafted = "drafted";  // the arm of an interleaved list
  /// Users fall into so many groups, which belong to one arm each.
  static constexpr std::int64_t kBuckets = 10'000;

  std::vector<std::string> names;  // of arms
  std::vector<double> shares;  // of the traffic, in percent; of an automatic promotion those of its begin
  bool interleave = false;
  Promotion promote = Promotion::kManual;
  double margin = 2.0;
  double holdout = 5.0;
  std::int64_t observe = 1000;
  std::int64_t keep_top = 0;
  std::int64_t max_displacement = 0;
  std::vector<std::string> models;  // fingerprints of the files of arms that are models, in order

  /// The value of --arms: "learner=50,incumbent=50", "promote=auto,margin=1". Throws InvalidArgument.
  static ArmPlan parse(std::string_view text);
  /// Throws InvalidArgument, with what is wrong and where, for arms that cannot be shown.
  void check(std::string_view origin) const;
  static const Schema& schema();
  /// Reads them as a state folder keeps them; `origin` names the text in messages.
  static ArmPlan parse_toml_text(std::string_view text, const std::string& origin);
  std::string toml_text() const { return print_settings(schema(), this); }

  /// With the incumbent among the arms, requests have to bring their own order.
  bool has(std::string_view name) const;
  bool limits_lists() const { return keep_top > 0 || max_displacement > 0; }
  std::vector<std::string> model_names() const;
  /// The arm that the others are compared with: the incumbent, or else the first.
  std::size_t baseline() const;
  /// Names the plan in records, so that what was shown under another one does not count.
  std::string id() const;

  /// A user has a bucket, or else a list whose request names none. Each plan deals the users again.
  static std::int64_t bucket_of(std::string_view id, std::string_view user);
  /// The arm of a bucket, by shares in percent.
  static std::size_t arm_of(std::int64_t bucket, std::span<const double> shares);

  friend bool operator==(const ArmPlan&, const ArmPlan&) = default;
};

/// The documents of `list` in an order as near to it as the limits allow: the first `keep_top` as the
/// incumbent has them, and none more than `max_displacement` ranks from its place there (0: no limit).
/// The limits can always be kept, as the incumbent's own order keeps them.
std::vector<std::int32_t> limited_list(std::span<const std::int32_t> list,
                                       std::span<const std::int32_t> incumbent, std::int64_t keep_top,
                                       std::int64_t max_displacement);

}  // namespace olrank
