/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a store or a proxy, as the command line names it. */
#ifndef SYMBOLIZE_PUSH_STORE_URL_H
#define SYMBOLIZE_PUSH_STORE_URL_H

#include <stdbool.h>

#include "formats/base/err.h"

enum { STORE_URL_MAX = 2000, STORE_HOST_MAX = 255 };

struct store_url {
    bool is_tls;                   /* https:// */
    bool is_loopback;              /* localhost, 127.0.0.0/8 or [::1]: what is sent stays on this host */
    char host[STORE_HOST_MAX + 1]; /* without port and brackets */
};

/*
 * Takes http://HOST[:PORT][/PATH] and https://; what could be read in another way elsewhere is refused. ERROR_USAGE
 * says what is wrong, with the name of the option but without the text, which may hold a password.
 */
struct error *store_url_read(const char *option, const char *url, struct store_url *out);

#endif
