/* SPDX-License-Identifier: Apache-2.0 */
/* Images by the path of their binary. A path from a trace becomes the name of a file, so it has to look like one. */
#include "formats/emit/perf_data/code_images.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/intern.h"
#include "formats/base/utf8.h"
#include "formats/base/vec.h"
#include "formats/emit/names.h"

enum {
    PATH_MAX_BYTES = 512, /* it stands in another path twice */
    NAME_MAX_BYTES = 255, /* between two slashes: what file systems take */
};

struct code_images {
    const struct emit_model *model;
    const struct emit_options *options;
    struct intern binaries; /* paths without " (deleted)"; number n has image n + 1 */
    struct intern folders;  /* that these lie in */
    VEC(struct code_image *) images;
};

static struct error *add_image(struct code_images *images)
{
    struct code_image *image;

    TRY(code_image_create(images->model, images->options, &image));
    if (VEC_PUSH(&images->images, image))
        return NULL;
    code_image_destroy(image);
    return error_no_memory();
}

struct error *code_images_create(const struct emit_model *model, const struct emit_options *options,
                                 struct code_images **out)
{
    struct code_images *images = calloc(1, sizeof *images);

    if (!images)
        return error_no_memory();
    *images = (struct code_images){.model = model, .options = options, .binaries.arena.limits = options->limits,
                                    .folders.arena.limits = options->limits};
    struct error *err = add_image(images);
    if (err)
        code_images_destroy(images);
    else
        *out = images;
    return err;
}

void code_images_destroy(struct code_images *images)
{
    if (!images)
        return;
    for (size_t i = 0; i < images->images.count; i++)
        code_image_destroy(images->images.data[i]);
    VEC_DEINIT(&images->images);
    intern_deinit(&images->binaries);
    intern_deinit(&images->folders);
    free(images);
}

/* Is it the name of a file or folder, and one that can be shown? */
static bool is_name(const char *s, size_t len)
{
    return len && len <= NAME_MAX_BYTES && !(len == 1 && *s == '.') && !(len == 2 && !memcmp(s, "..", 2)) &&
           utf8_is_printable(s, len);
}

/* An absolute path of names, one slash between two. */
static bool is_path(const char *s, size_t len)
{
    if (*s != '/' || len > PATH_MAX_BYTES)
        return false;
    for (size_t from = 1, end; from <= len; from = end + 1) {
        end = from + strcspn(s + from, "/");
        end = end < len ? end : len;
        if (!is_name(s + from, end - from))
            return false;
    }
    return true;
}

/* Would the file be a folder of another one, or the other way round? */
static bool is_in_the_way(const struct code_images *images, const char *path, size_t len)
{
    if (intern_find(&images->folders, path, (uint32_t)len) != INTERN_NONE)
        return true;
    for (size_t i = 1; i < len; i++) {
        if (path[i] == '/' && intern_find(&images->binaries, path, (uint32_t)i) != INTERN_NONE)
            return true;
    }
    return false;
}

/* Adds the path, and an image for it. */
static struct error *add_binary(struct code_images *images, const char *path, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        if (path[i] == '/' && intern_id(&images->folders, path, (uint32_t)i, NULL) == INTERN_NONE)
            return error_no_memory();
    }
    if (intern_id(&images->binaries, path, (uint32_t)len, NULL) == INTERN_NONE)
        return error_no_memory();
    return add_image(images);
}

bool code_images_have_binary(const struct code_images *images, const struct emit_frame *frame)
{
    return frame->kind == EMIT_NATIVE && frame->mapping != EMIT_NO_MAPPING &&
           (images->options->native_names || images->model->mappings[frame->mapping].is_elsewhere);
}

/* Sets *image to that of the binary of a native frame. */
static struct error *image_of(struct code_images *images, const struct emit_frame *frame, uint32_t *image)
{
    size_t len = name_path_len(frame->module);

    *image = CODE_IMAGES_PYTHON;
    if (!is_path(frame->module, len) || !images->model->mappings[frame->mapping].segment_count)
        return NULL;
    uint32_t id = intern_find(&images->binaries, frame->module, (uint32_t)len);
    if (id != INTERN_NONE) {
        *image = id + 1;
        return NULL;
    }
    if (images->binaries.count + 1 == CODE_IMAGES_MAX || is_in_the_way(images, frame->module, len))
        return NULL;
    *image = images->binaries.count + 1;
    return add_binary(images, frame->module, len);
}

struct error *code_images_address(struct code_images *images, uint32_t frame, uint32_t *image, uint64_t *address)
{
    *image = CODE_IMAGES_PYTHON;
    if (frame < CODE_IMAGE_TRUNCATED && code_images_have_binary(images, &images->model->frames[frame]))
        TRY(image_of(images, &images->model->frames[frame], image));
    return code_image_address(images->images.data[*image], frame, address);
}

bool code_images_are_used(const struct code_images *images)
{
    /* Others than the first were created for an address. */
    return images->images.count > 1 || code_image_is_used(images->images.data[CODE_IMAGES_PYTHON]);
}

uint32_t code_images_count(const struct code_images *images)
{
    return (uint32_t)images->images.count;
}

struct code_image *code_images_get(const struct code_images *images, uint32_t image)
{
    return images->images.data[image];
}

struct error *code_images_finish(struct code_images *images)
{
    struct names names;
    struct error *err = names_init(&names, images->model, images->options);

    for (size_t i = 0; !err && i < images->images.count; i++) {
        if (code_image_is_used(images->images.data[i]))
            err = code_image_finish(images->images.data[i], &names);
    }
    names_deinit(&names);
    return err;
}

void code_images_path(const struct code_images *images, uint32_t image, struct buf *out)
{
    if (image == CODE_IMAGES_PYTHON) {
        buf_put_str(out, CODE_IMAGE_NAME);
    } else {
        buf_put_str(out, "native");
        const struct intern_entry *path = intern_get(&images->binaries, image - 1);
        buf_put(out, path->data, path->len_bytes);
    }
}
