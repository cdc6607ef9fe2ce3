/* SPDX-License-Identifier: Apache-2.0 */
/* Why the kernel did not load the sampler. */
#ifndef CAPTURE_SAMPLER_LOAD_ERROR_H
#define CAPTURE_SAMPLER_LOAD_ERROR_H

#include <bpf/libbpf.h>

#include "formats/base/err.h"

/*
 * To be called before `obj` is loaded: an error where what its maps take at once is more than the cgroup allows. When the
 * memory has gone the kernel may end a process of the cgroup before it refuses a map.
 */
struct error *load_check_memory(const struct bpf_object *obj);

/* Returns an error that names the limit that was met, if one is known. `obj`: what was to be loaded; `e`: the errno. */
struct error *load_error(const struct bpf_object *obj, int e);

#endif
