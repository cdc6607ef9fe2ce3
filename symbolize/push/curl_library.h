/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, loaded when it is used: the program is not linked with it, so that only `pysym push` needs it, and nothing
 * else can reach a network. A static pysym has it linked in.
 */
#ifndef SYMBOLIZE_PUSH_CURL_LIBRARY_H
#define SYMBOLIZE_PUSH_CURL_LIBRARY_H

/* The types are those of the functions, without the checks of macros of the same names. */
#define CURL_DISABLE_TYPECHECK
/* CURLOPT_PROTOCOLS: what came for it is newer than the releases of some distributions in use. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include "formats/base/err.h"

#define CURL_LIBRARY_FUNCTIONS(F) \
    F(global_init)                \
    F(easy_init)                  \
    F(easy_cleanup)               \
    F(easy_setopt)                \
    F(easy_getinfo)               \
    F(easy_strerror)              \
    F(multi_init)                 \
    F(multi_cleanup)              \
    F(multi_add_handle)           \
    F(multi_remove_handle)        \
    F(multi_perform)              \
    F(multi_wait)                 \
    F(multi_info_read)            \
    F(slist_append)               \
    F(slist_free_all)

struct curl_library {
#define CURL_LIBRARY_MEMBER(name) __typeof__(curl_##name) *name;
    CURL_LIBRARY_FUNCTIONS(CURL_LIBRARY_MEMBER)
#undef CURL_LIBRARY_MEMBER
};

/* ERROR_UNSUPPORTED: it is not installed, or lacks a function. It stays loaded. */
struct error *curl_library_load(struct curl_library *out);

#endif
