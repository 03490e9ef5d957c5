#pragma once

#include <string>
#include <string_view>

namespace olrank {

/// A query's text, which is UTF-8, as people mean it: without white space at its ends, with single spaces
/// within, in lower case, and with letters and their accents as one character (NFC). This knows the letters
/// of Latin (without its African and phonetic extensions), Greek (without the ancient accents) and
/// Cyrillic, and puts no marks in another order; others stay as they are.
std::string normalised_query(std::string_view text);

}  // namespace olrank
