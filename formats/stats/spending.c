/* SPDX-License-Identifier: Apache-2.0 */
/* The error that a look may spend. */
#include "formats/stats/spending.h"

#include <math.h>

double spending_level(double alpha, uint32_t look, uint32_t looks)
{
    double step = (M_E - 1) / looks;

    /* ln(1 + k step) - ln(1 + (k - 1) step) */
    return alpha * log1p(step / (1 + (look - 1) * step));
}
