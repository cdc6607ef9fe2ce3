/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/curl_library.h"

#ifdef LIBRARIES_LINKED
#include "symbolize/binary/certificates.h"

struct error *curl_library_load(struct curl_library *out)
{
#define CURL_LIBRARY_MEMBER(name) out->name = curl_##name;
    CURL_LIBRARY_FUNCTIONS(CURL_LIBRARY_MEMBER)
#undef CURL_LIBRARY_MEMBER
    certificates_find();
    return out->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? NULL : error_no_memory();
}
#else
#include <dlfcn.h>

/* Debian's names for builds with OpenSSL (which others call so, too) and with GnuTLS. */
static void *open_library(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    return library ? library : dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
}

struct error *curl_library_load(struct curl_library *out)
{
    void *library = open_library();
    bool whole = true;

    if (!library)
        return error_create(ERROR_UNSUPPORTED,
                            "a store is reached with libcurl, which is not installed: Debian's package is libcurl4 or libcurl3-gnutls");
#define CURL_LIBRARY_FIND(name) whole &= (out->name = (__typeof__(curl_##name) *)dlsym(library, "curl_" #name)) != NULL;
    CURL_LIBRARY_FUNCTIONS(CURL_LIBRARY_FIND)
#undef CURL_LIBRARY_FIND
    if (!whole || out->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_create(ERROR_UNSUPPORTED, "libcurl cannot be used; 7.55 or later is needed");
    return NULL;
}
#endif
