#include "report/curve_reader.h"
