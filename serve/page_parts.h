#pragma once

#include <string>
#include <string_view>

namespace olrank {

/// A service's page from its first line to where its body begins, with the style that all pages share and
/// the rules of this one.
std::string page_head(std::string_view title, std::string_view style);

/// The script that all pages share and that of this one, to the page's end. Text from outside reaches a
/// page as text nodes only, by the shared make(). Attributes named style would need a weaker policy.
std::string page_script(std::string_view script);

}  // namespace olrank
