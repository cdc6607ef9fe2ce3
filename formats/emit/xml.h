/* SPDX-License-Identifier: Apache-2.0 */
/* Text in XML. */
#ifndef FORMATS_EMIT_XML_H
#define FORMATS_EMIT_XML_H

#include <stddef.h>

#include "formats/base/buf.h"

/*
 * Appends text for an element or an attribute: markup is escaped. What is no UTF-8, and what XML 1.0 has no place for
 * even escaped (most control characters, U+FFFE and U+FFFF), becomes U+FFFD.
 */
void xml_put(const void *text, size_t len_bytes, struct buf *out);

#endif
