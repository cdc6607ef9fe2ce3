/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/store_kind.h"

#include <stddef.h>

const struct store_kind *const store_kinds[] = {&store_pyroscope, &store_parca, NULL};
