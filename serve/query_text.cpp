#include <algorithm>
#include <cstddef>

#include "core/text/message_text.h"
#include "serve/requests.h"

namespace olrank {
namespace {

/// Each `step`-th letter of the range has its lower case at this distance, by Unicode's simple folding.
struct CaseRange {
  char32_t first, last, step;
  int distance;
};
constexpr CaseRange kCases[] = {
    {0x41, 0x5A, 1, 32},     {0xB5, 0xB5, 1, 775},   {0xC0, 0xD6, 1, 32},     {0xD8, 0xDE, 1, 32},
    {0x100, 0x12E, 2, 1},    {0x132, 0x136, 2, 1},   {0x139, 0x147, 2, 1},    {0x14A, 0x176, 2, 1},
    {0x178, 0x178, 1, -121}, {0x179, 0x17D, 2, 1},   {0x17F, 0x17F, 1, -268}, {0x1A0, 0x1A0, 1, 1},
    {0x1AF, 0x1AF, 1, 1},    {0x1CD, 0x1DB, 2, 1},   {0x1DE, 0x1EE, 2, 1},    {0x1F4, 0x1F4, 1, 1},
    {0x1F8, 0x21E, 2, 1},    {0x222, 0x232, 2, 1},   {0x386, 0x386, 1, 38},   {0x388, 0x38A, 1, 37},
    {0x38C, 0x38C, 1, 64},   {0x38E, 0x38F, 1, 63},  {0x391, 0x3A1, 1, 32},   {0x3A3, 0x3AB, 1, 32},
    {0x3C2, 0x3C2, 1, 1},    {0x3CF, 0x3CF, 1, 8},   {0x400, 0x40F, 1, 80},   {0x410, 0x42F, 1, 32},
    {0x460, 0x480, 2, 1},    {0x48A, 0x4BE, 2, 1},   {0x4C0, 0x4C0, 1, 15},   {0x4C1, 0x4CD, 2, 1},
    {0x4D0, 0x52E, 2, 1},    {0x1E00, 0x1E94, 2, 1}, {0x1EA0, 0x1EFE, 2, 1}};

/// An accent has letters without it and with it by turns, by Unicode's canonical composition.
struct Accent {
  char32_t mark;
  std::string_view letters;
};
constexpr Accent kAccents[] = {
    {0x300, "nǹüǜaàeèiìoòuùwẁyỳâầêềôồăằēḕōṑơờưừеѐиѝ"},
    {0x301, "gǵüǘåǻæǽøǿaácćeéiíkḱlĺmḿnńoópṕrŕsśuúwẃyýzźâấçḉêếïḯôốõṍăắēḗōṓũṹơớưứαάεέηήιίοόυύωώϊΐϋΰгѓкќ"},
    {0x302, "aâcĉeêgĝhĥiîjĵoôsŝuûwŵyŷzẑạậẹệọộ"},
    {0x303, "aãeẽiĩnñoõuũvṽyỹâẫêễôỗăẵơỡưữ"},
    {0x304, "üǖäǟȧǡæǣǫǭöȫõȭȯȱyȳaāeēgḡiīoōuūиӣуӯḷḹṛṝ"},
    {0x306, "aăeĕgğiĭoŏuŭȩḝаӑеӗжӂийуўạặ"},
    {0x307, "aȧoȯbḃcċdḋeėfḟgġhḣmṁnṅpṗrṙsṡtṫwẇxẋyẏzżśṥšṧṣṩ"},
    {0x308, "aäeëhḧiïoötẗuüwẅxẍyÿõṏūṻιϊυϋаӓеёжӝзӟиӥоӧуӱчӵыӹэӭіїәӛөӫ"},
    {0x309, "aảeẻiỉoỏuủyỷâẩêểôổăẳơởưử"},
    {0x30A, "aåuůwẘyẙ"},
    {0x30B, "oőuűуӳ"},
    {0x30C, "aǎiǐoǒuǔüǚgǧjǰkǩhȟcčdďeělľnňrřsštťzž"},
    {0x30F, "aȁeȅiȉoȍrȑuȕѵѷ"},
    {0x311, "aȃeȇiȋoȏrȓuȗ"},
    {0x31B, "oơuưòờóớõỡùừúứũữọợỏởụựủử"},
    {0x323, "aạbḅdḍeẹhḥiịkḳlḷmṃnṇoọrṛsṣtṭuụvṿwẉyỵzẓâậêệôộăặơợưựṡṩ"},
    {0x324, "uṳ"},
    {0x325, "aḁ"},
    {0x326, "sștț"},
    {0x327, "cçdḑeȩgģhḩkķlļnņrŗsştţćḉĕḝ"},
    {0x328, "oǫaąeęiįuų"},
    {0x32D, "dḓeḙlḽnṋtṱuṷ"},
    {0x32E, "hḫ"},
    {0x330, "eḛiḭuṵ"},
    {0x331, "bḇdḏhẖkḵlḻnṉrṟtṯzẕ"}};

char32_t take_character(std::string_view& text) {
  const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
  auto character = static_cast<char32_t>(static_cast<unsigned char>(text[0]));
  if (length > 1) character &= 0xFFU >> (length + 1);
  for (std::size_t at = 1; at < length; ++at)
    character = character << 6U | (static_cast<unsigned char>(text[at]) & 0x3FU);
  text.remove_prefix(length);
  return character;
}

void append_character(std::string& text, char32_t character) {
  if (character < 0x80) {
    text += static_cast<char>(character);
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xFFU << (7 - more) & 0xFFU) | character >> (6 * more));
  for (int left = more - 1; left >= 0; --left)
    text += static_cast<char>(0x80U | (character >> (6 * left) & 0x3FU));
}

char32_t lower_case(char32_t letter) {
  for (const CaseRange& range : kCases) {
    if (letter >= range.first && letter <= range.last && (letter - range.first) % range.step == 0)
      return letter + static_cast<char32_t>(range.distance);
  }
  return letter;
}

/// The letter with the accent; 0 if there is none.
char32_t with_accent(char32_t letter, char32_t mark) {
  for (const Accent& accent : kAccents) {
    if (accent.mark != mark) continue;
    for (std::string_view left = accent.letters; !left.empty();) {
      const char32_t plain = take_character(left);
      const char32_t composed = take_character(left);
      if (plain == letter) return composed;
    }
  }
  return 0;
}

bool is_space(char32_t character) {
  return character == ' ' || (character >= 0x9 && character <= 0xD) || character == 0x85 ||
         character == 0xA0 || character == 0x1680 || (character >= 0x2000 && character <= 0x200A) ||
         character == 0x2028 || character == 0x2029 || character == 0x202F || character == 0x205F ||
         character == 0x3000;
}

}  // namespace

std::string normalised_query(std::string_view text) {
  std::u32string folded;
  while (!text.empty()) {
    const char32_t character = take_character(text);
    if (is_space(character)) {
      if (!folded.empty() && folded.back() != ' ') folded += ' ';
      continue;
    }
    if (character == 0xDF || character == 0x1E9E) {  // ß
      folded += U"ss";
      continue;
    }
    if (character == 0x130) {  // İ, whose dot stays
      folded += U"i\u0307";
      continue;
    }
    const char32_t letter = lower_case(character);
    const char32_t composed = folded.empty() ? 0 : with_accent(folded.back(), letter);
    if (composed == 0) {
      folded += letter;
    } else {
      folded.back() = composed;
    }
  }
  if (!folded.empty() && folded.back() == ' ') folded.pop_back();
  std::string query;
  for (const char32_t character : folded) append_character(query, character);
  return query;
}

}  // namespace olrank
