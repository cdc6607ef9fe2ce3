/* SPDX-License-Identifier: Apache-2.0 */
/* Names the files, and writes each where perf's build-id cache has it. Only links into it lie outside. */
#include "formats/emit/perf_data/name_files.h"

#include <string.h>

#include "formats/base/hex.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

static void put_folder(const struct emit_files *files, struct buf *out)
{
    buf_put_str(out, files->name);
    buf_put_str(out, ".d");
}

void name_files_image_path(const struct emit_files *files, const struct code_images *images, uint32_t image,
                           struct buf *out)
{
    buf_put_str(out, files->folder);
    put_folder(files, out);
    buf_put_u8(out, '/');
    code_images_path(images, image, out);
}

void name_files_cache(const struct emit_files *files, struct buf *out)
{
    put_folder(files, out);
    buf_put_str(out, "/debug");
}

/* A member of the cache: a file of names. */
struct member {
    const char *path;   /* as records have it, without the first slash */
    const char *name;   /* "elf" or "kallsyms" */
    const struct hex id;
};

static struct error *create_member(struct emit_files *files, const struct member *m, FILE **out)
{
    struct buf path = {0};
    struct error *err;

    name_files_cache(files, &path);
    buf_printf(&path, "/%s/%s/%s", m->path, m->id.text, m->name);
    err = path.bad ? error_no_memory() : files->create(files, buf_cstr(&path), out);
    buf_deinit(&path);
    return err;
}

/* Creates the file, and the link by which it is found. */
static struct error *add_member(struct emit_files *files, const struct member *m, FILE **out)
{
    struct buf link = {0}, target = {0};
    struct error *err = create_member(files, m, out);

    name_files_cache(files, &link);
    buf_printf(&link, "/.build-id/%.2s/%s", m->id.text, m->id.text + 2);
    buf_printf(&target, "../../%s/%s", m->path, m->id.text);
    if (!err)
        err = link.bad || target.bad ? error_no_memory() : files->link(files, buf_cstr(&link), buf_cstr(&target));
    buf_deinit(&link);
    buf_deinit(&target);
    return err;
}

/* As text for hotspot, which is told where it is, and as an ELF file for perf. */
static struct error *write_kernel(struct emit_files *files, struct kernel_names *kernel)
{
    FILE *file;

    TRY(kernel_names_finish(kernel));
    struct member member = {KERNEL_NAMES_PATH, "kallsyms",
                            hex_of(kernel_names_build_id(kernel), KERNEL_NAMES_ID_BYTES)};
    TRY(add_member(files, &member, &file));
    TRY(kernel_names_write(kernel, file));
    member.name = "elf";
    TRY(create_member(files, &member, &file));
    return kernel_names_write_elf(kernel, file);
}

/* Makes a link to the member at `path` of the folder of names, such as python-code. */
static struct error *link_image(struct emit_files *files, const char *path, const struct member *m)
{
    struct buf link = {0}, target = {0};
    struct error *err;

    put_folder(files, &link);
    buf_printf(&link, "/%s", path);
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++)
        buf_put_str(&target, "../");
    buf_printf(&target, "debug/%s/%s/%s", m->path, m->id.text, m->name);
    err = link.bad || target.bad ? error_no_memory() : files->link(files, buf_cstr(&link), buf_cstr(&target));
    buf_deinit(&link);
    buf_deinit(&target);
    return err;
}

/* `first`: the image that has the contents of number `i`, that one or an earlier one. Contents are written once. */
static struct error *write_image(struct emit_files *files, const struct code_images *images, uint32_t i, uint32_t first)
{
    const struct code_image *image = code_images_get(images, i);
    struct buf full = {0}, path = {0};
    FILE *file;

    name_files_image_path(files, images, first, &full);
    code_images_path(images, i, &path);
    const struct member member = {buf_cstr(&full) + 1, "elf",
                                  hex_of(code_image_build_id(image), CODE_IMAGE_ID_BYTES)};
    struct error *err = full.bad || path.bad ? error_no_memory() : NULL;
    if (!err && first == i)
        err = add_member(files, &member, &file);
    if (!err)
        err = link_image(files, buf_cstr(&path), &member);
    if (!err && first == i)
        err = code_image_write(image, file);
    buf_deinit(&full);
    buf_deinit(&path);
    return err;
}

/* The build ID of an image says what it holds: of two binaries with the same names it is one. */
static struct error *write_images(struct emit_files *files, const struct code_images *images)
{
    struct intern ids = {0};
    VEC(uint32_t) first = {0}; /* image of each id */
    struct error *err = NULL;

    for (uint32_t i = 0; !err && i < code_images_count(images); i++) {
        const struct code_image *image = code_images_get(images, i);
        bool added;
        if (!code_image_is_used(image))
            continue;
        uint32_t id = intern_id(&ids, code_image_build_id(image), CODE_IMAGE_ID_BYTES, &added);
        bool ok = id != INTERN_NONE && (!added || VEC_PUSH(&first, i));
        err = ok ? write_image(files, images, i, first.data[id]) : error_no_memory();
    }
    VEC_DEINIT(&first);
    intern_deinit(&ids);
    return err;
}

struct error *name_files_write(struct emit_files *files, struct code_images *images, struct kernel_names *kernel)
{
    TRY(code_images_finish(images));
    TRY(write_images(files, images));
    return kernel_names_are_used(kernel) ? write_kernel(files, kernel) : NULL;
}
