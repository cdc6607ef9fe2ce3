/* SPDX-License-Identifier: Apache-2.0 */
/* The modules with native frames that are shown without a name: which, why, and what would give them names. */
#ifndef SYMBOLIZE_SUMMARY_UNNAMED_H
#define SYMBOLIZE_SUMMARY_UNNAMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/stack/resolve.h"

/* Why a module's frames have no names, and so what to do about it. */
enum unnamed_cause {
    UNNAMED_STRIPPED,   /* its file was found and has no debug symbols, at most exported names */
    UNNAMED_PARTLY,     /* its file has symbols, but none for some of the code */
    UNNAMED_NOT_FOUND,  /* its file was not found */
    UNNAMED_VANISHED,   /* the same, and it lay in a temporary folder */
    UNNAMED_OTHER_FILE, /* another file lies at its path, such as an update */
    UNNAMED_NO_ID,      /* the trace cannot say which file it is */
    UNNAMED_UNREADABLE, /* its file was found and is broken */
    UNNAMED_MADE,       /* code made at run time, of which the process wrote no table */
    UNNAMED_CAUSES,
};

struct unnamed {
    const struct modcache_entry **modules; /* owned; those with most samples without a name first */
    uint32_t count;
};

struct error *unnamed_list(const struct resolver *r, struct unnamed *out);
void unnamed_deinit(struct unnamed *u);
enum unnamed_cause unnamed_cause(const struct modcache_entry *m);
/* In a few words, such as "no debug symbols". */
const char *unnamed_reason(enum unnamed_cause cause);
/* True if its path is one of those where distributions put the files of packages. */
bool unnamed_is_packaged(const struct modcache_entry *m);
/*
 * The package that has the debug symbols of a file of a package, where its name tells: "libc6-dbg". NULL: it does
 * not. These are Debian's and Ubuntu's names.
 */
const char *unnamed_package(const struct modcache_entry *m, char *text, size_t size);
/* Appends ": libz.so.1.2.13, libcrypto.so.3 and 4 more" for a message; nothing if no module lacks names. */
void unnamed_put_modules(const struct resolver *r, struct buf *line);
/* The last part of a path, or the whole if that is empty. */
const char *unnamed_base_name(const char *path);

#endif
