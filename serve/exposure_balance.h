#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "core/fair/exposure.h"

namespace olrank {

/// The exposure of the groups in all lists of a service: those of its log, and those shown since it
/// started. Lists are made one at a time, each with the unfairness of all before it, so that FairExp keeps
/// |UF| ≤ ε with requests at the same time, too. Thread-safe.
class ExposureBalance {
 public:
  ExposureBalance(ExposureRule rule, const ExposureLedger& logged)
      : rule_(std::move(rule)), ledger_(logged) {}

  const ExposureRule& rule() const { return rule_; }
  /// Does not wait for a list that is being made.
  ExposureLedger ledger() const {
    const std::lock_guard lock(ledger_mutex_);
    return ledger_;
  }

  /// From its constructor to its destructor, the only one to make a list.
  class Turn {
   public:
    explicit Turn(ExposureBalance& balance) : balance_(balance), turn_(balance.turn_mutex_) {}

    /// For a list of documents of these groups.
    FairRound round(std::span<const DocGroup> groups) const {
      return {groups, &balance_.rule_, balance_.ledger().unfairness()};
    }
    /// Counts the list; returns the unfairness after it, of the two groups farthest apart.
    double show(std::span<const DocGroup> groups, std::span<const std::int32_t> shown) {
      const std::lock_guard lock(balance_.ledger_mutex_);
      balance_.ledger_.observe(balance_.rule_, groups, shown);
      return balance_.rule_.farthest(balance_.ledger_.unfairness());
    }

   private:
    ExposureBalance& balance_;
    std::lock_guard<std::mutex> turn_;
  };

  /// {"unfairness", "epsilon", "beta", "lists", "fair_share", "exposure"}.
  std::string json() const;
  /// In the Prometheus text format.
  std::string metrics() const;

 private:
  const ExposureRule rule_;
  std::mutex turn_mutex_;
  mutable std::mutex ledger_mutex_;
  ExposureLedger ledger_;
};

}  // namespace olrank
