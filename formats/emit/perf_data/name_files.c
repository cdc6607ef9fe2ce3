/* SPDX-License-Identifier: Apache-2.0 */
/* Names the files, and writes each where perf's build-id cache has it. Only python-code lies outside, a link into it. */
#include "formats/emit/perf_data/name_files.h"

#include "formats/base/hex.h"

static void put_folder(const struct emit_files *files, struct buf *out)
{
    buf_put_str(out, files->name);
    buf_put_str(out, ".d");
}

void name_files_image_path(const struct emit_files *files, struct buf *out)
{
    buf_put_str(out, files->folder);
    put_folder(files, out);
    buf_put_str(out, "/" CODE_IMAGE_NAME);
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
static struct error *write_kernel(struct emit_files *files, struct kernel_names *kernel, struct name_files *out)
{
    FILE *file;

    TRY(kernel_names_finish(kernel, out->kernel_id));
    struct member member = {KERNEL_NAMES_PATH, "kallsyms", hex_of(out->kernel_id, sizeof out->kernel_id)};
    TRY(add_member(files, &member, &file));
    out->has_kernel = true;
    TRY(kernel_names_write(kernel, file));
    member.name = "elf";
    TRY(create_member(files, &member, &file));
    return kernel_names_write_elf(kernel, out->kernel_id, file);
}

/* Makes the link to the member: perf.data.d/python-code, to which `path` leads. */
static struct error *link_image(struct emit_files *files, const struct member *m)
{
    struct buf link = {0}, target = {0};
    struct error *err;

    put_folder(files, &link);
    buf_put_str(&link, "/" CODE_IMAGE_NAME);
    buf_printf(&target, "debug/%s/%s/%s", m->path, m->id.text, m->name);
    err = link.bad || target.bad ? error_no_memory() : files->link(files, buf_cstr(&link), buf_cstr(&target));
    buf_deinit(&link);
    buf_deinit(&target);
    return err;
}

static struct error *write_image(struct emit_files *files, struct code_image *image, const char *path,
                                 struct name_files *out)
{
    FILE *file;

    TRY(code_image_finish(image, out->image_id));
    const struct member member = {path + 1, "elf", hex_of(out->image_id, sizeof out->image_id)};
    TRY(add_member(files, &member, &file));
    TRY(link_image(files, &member));
    out->has_image = true;
    return code_image_write(image, file);
}

struct error *name_files_write(struct emit_files *files, struct code_image *image, struct kernel_names *kernel,
                               struct name_files *out)
{
    struct buf path = {0};
    struct error *err = NULL;

    *out = (struct name_files){0};
    name_files_image_path(files, &path);
    if (path.bad)
        err = error_no_memory();
    if (!err && code_image_is_used(image))
        err = write_image(files, image, buf_cstr(&path), out);
    if (!err && kernel_names_are_used(kernel))
        err = write_kernel(files, kernel, out);
    buf_deinit(&path);
    return err;
}
