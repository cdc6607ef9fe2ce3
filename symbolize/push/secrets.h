/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a push proves who it is: a token (PYSYM_TOKEN, --token-file) or a user and a password (PYSYM_PASSWORD,
 * --password-file). Secrets are in no argument, message or core dump, and leave the environment when they are read.
 */
#ifndef SYMBOLIZE_PUSH_SECRETS_H
#define SYMBOLIZE_PUSH_SECRETS_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "symbolize/push/request.h"

struct secrets;
/*
 * Reads what the request and the environment name, and overwrites it in the environment. While there is a secret the
 * process can be dumped by nobody but root. ERROR_USAGE: both kinds, half a pair, or a file that others may read or write
 * (secrets_check_file()).
 */
struct error *secrets_open(const struct push_request *request, struct secrets **out);
/* Overwrites them. */
void secrets_close(struct secrets *s);
/* "Authorization: ..." for a request, until the next call; NULL: there is no secret. */
const char *secrets_header(const struct secrets *s);
/* Reads the file anew, since tokens are replaced in it. *changed: it has another secret now. */
struct error *secrets_renew(struct secrets *s, bool *changed);
/* Overwrites secrets in a text, which a store may repeat in what it answers. */
void secrets_hide(const struct secrets *s, char *text);

/*
 * May a secret stand in the file? Not where others than its owner and group may read or write it; but in a tmpfs
 * that is mounted read-only they may read: so Kubernetes and Docker hand secrets to a container, mode 0644 and 0444, and who
 * else is in the container is not a question of modes.
 */
struct error *secrets_check_file(int fd, const char *path, const char *what);
/* Overwrites and removes all secrets in this process' environment, those of proxies too: for processes that need none. */
void secrets_forget_environment(void);

#endif
