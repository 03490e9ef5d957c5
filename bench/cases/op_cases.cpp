#include "bench/cases/op_cases.h"

#include "bench/cases/case_list.h"

namespace olrank {

std::vector<BenchCase> op_cases(const OpSizes& sizes) {
  CaseList list(sizes);
  add_product_cases(list);
  add_network_cases(list);
  add_gradient_cases(list);
  add_kernel_cases(list);
  add_factor_cases(list);
  add_inverse_cases(list);
  add_width_cases(list);
  add_training_cases(list);
  add_list_cases(list);
  add_fair_cases(list);
  return list.take();
}

}  // namespace olrank
