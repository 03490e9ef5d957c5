#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace olrank {

/// The files of one fold. A part may consist of several files, in order.
struct PartFiles {
  std::vector<std::string> train;
  std::vector<std::string> vali;  // may be missing
  std::vector<std::string> test;
};

/// Finds the files of a fold (from 1) in a folder that holds one of
///   train.txt, test.txt and perhaps vali.txt: the only fold is 1;
///   Fold1 … Fold5, each with these files;
///   S1 … S5: fold k trains on parts k, k+1, k+2, validates on k+3 and tests on k+4, cyclically.
/// Each file plain, .gz or .zst, or .olrank in place of .txt. Throws InvalidArgument that lists what was
/// looked for, or DataError when one name is there in several forms.
PartFiles find_part_files(const std::string& folder, std::int64_t fold);

/// The folds that the folder has, from 1.
std::int64_t count_folds(const std::string& folder);

}  // namespace olrank
