/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/certificates.h"

#include <stdlib.h>
#include <unistd.h>

void certificates_find(void)
{
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Alpine, Arch, NixOS */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL, Amazon Linux */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* the same, newer ones */
        "/etc/ssl/ca-bundle.pem",                            /* SUSE */
        "/etc/ssl/cert.pem",
    };

    for (size_t i = 0; !getenv("SSL_CERT_FILE") && !getenv("SSL_CERT_DIR") && i < sizeof files / sizeof *files; i++) {
        if (!access(files[i], R_OK))
            setenv("SSL_CERT_FILE", files[i], 1);
    }
}
