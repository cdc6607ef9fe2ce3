/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where this system keeps the certificates of those who sign others: a static pysym brings its TLS library with it, and is
 * not told by a distribution.
 */
#ifndef SYMBOLIZE_BINARY_CERTIFICATES_H
#define SYMBOLIZE_BINARY_CERTIFICATES_H

/* Has OpenSSL read the first of the usual files that is there, unless SSL_CERT_FILE or SSL_CERT_DIR name another place. */
void certificates_find(void);

#endif
