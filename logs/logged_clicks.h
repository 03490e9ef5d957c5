#pragma once

#include <cstdint>
#include <string>

#include "core/clicks/click_lists.h"

namespace olrank {

struct LoggedClicksRequest {
  std::string log;           // as LogReader takes it
  double holdout = 0.2;      // share of lists that are held out
  std::int64_t ranks = 100;  // later ones are left out
  bool inputs = true;        // whether those of documents are kept
};

/// The lists of a log, in its order. A document of a query is the same one wherever its ID is the same.
struct LoggedClicks {
  ClickLists fitted;
  ClickLists held_out;
  ClickDocs docs;  // with their first inputs; columns = 0 where a list has none
  std::int64_t clicks = 0;
  std::int64_t longer_lists = 0;  // than the ranks that count

  std::int64_t lists() const { return fitted.size() + held_out.size(); }
};

/// Lists are held out by the hash of their impression, or of their number in the log where they have none.
/// Throws DataError with the line for a log that cannot be read, InvalidArgument for one without clicks and
/// for one that is too short to hold out lists.
LoggedClicks read_logged_clicks(const LoggedClicksRequest& request);

}  // namespace olrank
