/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a module: what the trace says that they are, and what was found. */
#ifndef SYMBOLIZE_BINARY_BINARY_FILES_H
#define SYMBOLIZE_BINARY_BINARY_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where distributions put debug files. */
#define BINARY_DEBUG_FOLDER "/usr/lib/debug"

/* What the trace says about a module. Borrowed. */
struct binary_key {
    const uint8_t *build_id;
    uint32_t build_id_len;
    uint32_t id_kind;  /* enum elf_id_kind; with ELF_ID_NONE nothing is ever found */
    const char *path;  /* as recorded */
    uint64_t file_size; /* bytes, as recorded; a file of another size is never hashed */
    bool no_servers; /* they were asked for it already, with another path */
};

/*
 * All owned. Whoever reads a file does so by its descriptor: it is the one that was checked, while its path may lead to
 * another by now, and the name of a file of an archive is no path at all.
 */
struct binary_files {
    char *binary;     /* the file with the code and .eh_frame, or NULL */
    char *debug;      /* the file with DWARF or symbols (may equal binary), or NULL */
    char *supplement; /* what dwz split off the debug file, or NULL */
    int binary_fd, debug_fd, supplement_fd; /* 0: there is none; tests then open it by its path */
    char *source;     /* how the binary was found, for the summary: "archive", "recorded path", "symfs" …, or NULL */
    char *debug_source; /* the same for the debug file; NULL when it is the binary */
    char *supplement_source; /* the same; "missing" when the debug file needs a supplement that was not found */
    bool is_other;    /* no binary was found, but another file lies where it should: `problem` says which */
    char *problem;    /* why no binary was found, or what is wrong with it ("build ID differs: …"), or NULL */
};
void binary_files_deinit(struct binary_files *files);
/*
 * Do names come from where perf, too, looks for them without being told: the binary at its recorded path, which is given
 * without " (deleted)", and its debug file beside it or in /usr/lib/debug? Also true where nothing was found.
 */
bool binary_files_are_at(const struct binary_files *files, const char *path, size_t path_len);
/*
 * Another descriptor of one of the files, given its path and descriptor above. The caller closes the result. -1 and errno
 * on failure.
 */
int binary_open(const char *path, int fd);

#endif
