/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/stack_groups.h"

#include <string.h>

#include "formats/base/code_file.h"

/* ---- names of groups ---- */

/* A part of a path, up to its NUL or `len`. */
struct part {
    const char *text;
    size_t len;
};

static struct part base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *text = slash ? slash + 1 : path;

    return (struct part){text, strlen(text)};
}

/* "3.12" or "3" behind "/lib/python" or "/lib64/python", with the slash; NULL: it is no such folder. */
static const char *behind_version(const char *at)
{
    size_t len = strspn(at, "0123456789.t");

    return len && at[len] == '/' ? at + len + 1 : NULL;
}

/* What follows the folder of packages or of the standard library in which a file lies; NULL: it lies in none. */
static const char *in_packages(const char *path)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib-dynload/"};
    static const char library[] = "/python";
    const char *found = NULL, *at;

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        at = strstr(path, folders[i]);
        if (at && (!found || at + strlen(folders[i]) > found))
            found = at + strlen(folders[i]);
    }
    for (at = path; !found && (at = strstr(at, library)); at++)
        found = behind_version(at + strlen(library));
    return found;
}

/* "a.b" of "a/b.py", "a/b/__init__.py" and "a/b.cpython-312-x86_64-linux-gnu.so". */
static void put_dotted(const char *path, struct buf *out)
{
    static const char package[] = "/__init__.py";
    size_t len = strlen(path), package_len = strlen(package);
    struct part base = base_name(path);
    const char *dot = memchr(base.text, '.', base.len);

    if (len > package_len && !strcmp(path + len - package_len, package))
        len -= package_len;
    else if (dot && dot > base.text)
        len = (size_t)(dot - path);
    for (size_t i = 0; i < len; i++)
        buf_put_u8(out, path[i] == '/' ? '.' : (uint8_t)path[i]);
}

/* "numpy" of "numpy/core/x.so", "numpy.libs/y.so" and "numpy.py"; "_json" of "_json.cpython-312-x86_64-linux-gnu.so". */
static void put_first_part(const char *path, struct buf *out)
{
    static const char libraries[] = ".libs";
    size_t len = strcspn(path, "/");
    bool is_file = !path[len];

    if (is_file && strcspn(path, ".") && path[strcspn(path, ".")])
        len = strcspn(path, ".");
    else if (len > strlen(libraries) && !memcmp(path + len - strlen(libraries), libraries, strlen(libraries)))
        len -= strlen(libraries);
    buf_put(out, path, len);
}

/* "app" of "/srv/app/views.py"; of a file without a folder the file's name. */
static void put_folder(const char *path, struct buf *out)
{
    struct part base = base_name(path);
    const char *end = base.text > path ? base.text - 1 : path, *begin = end;

    while (begin > path && begin[-1] != '/')
        begin--;
    if (begin == end)
        put_dotted(base.text, out);
    else
        buf_put(out, begin, (size_t)(end - begin));
}

/* "importlib._bootstrap" of "<frozen importlib._bootstrap>"; false: it is no such name. */
static bool put_frozen(const char *file, bool whole, struct buf *out)
{
    static const char frozen[] = "<frozen ";
    size_t skip = strlen(frozen);

    if (strncmp(file, frozen, skip) != 0)
        return false;
    buf_put(out, file + skip, strcspn(file + skip, whole ? ">" : ".>"));
    return true;
}

static void put_python_group(enum stack_group group, const struct emit_frame *frame, struct buf *out)
{
    const char *inside = in_packages(frame->file);
    bool whole = group == STACK_GROUP_MODULE;

    if (!*frame->file)
        buf_put_str(out, "[unknown]");
    else if (group == STACK_GROUP_FILE || (!code_file_is_path(frame->file) && !put_frozen(frame->file, whole, out)))
        buf_put_str(out, frame->file);
    else if (!code_file_is_path(frame->file))
        return;
    else if (whole)
        put_dotted(inside ? inside : base_name(frame->file).text, out);
    else if (inside)
        put_first_part(inside, out);
    else
        put_folder(frame->file, out);
}

static void put_native_group(enum stack_group group, const struct emit_frame *frame, struct buf *out)
{
    const char *inside = in_packages(frame->module);
    struct part base = base_name(frame->module);

    if (group == STACK_GROUP_FILE && *frame->file)
        buf_put_str(out, frame->file);
    else if (!*frame->module)
        buf_put_str(out, "[unknown]");
    else if (group == STACK_GROUP_FILE)
        buf_put_str(out, frame->module);
    else if (group == STACK_GROUP_PACKAGE && inside)
        put_first_part(inside, out);
    else
        buf_put(out, base.text, base.len);
}

void stack_group_name(enum stack_group group, const struct emit_frame *frame, struct buf *out)
{
    static const char *const layers[] = {[EMIT_PYTHON] = "Python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel"};

    if (group == STACK_GROUP_LAYER)
        buf_put_str(out, layers[frame->kind]);
    else if (frame->kind == EMIT_PYTHON)
        put_python_group(group, frame, out);
    else
        put_native_group(group, frame, out);
    if (!out->len_bytes) /* the path ends with a slash */
        buf_put_str(out, "[unknown]");
}

/* ---- --group ---- */

bool stack_has_group(const struct stack_map_options *o)
{
    return o->group != STACK_GROUP_NONE;
}

/* The frame that stands for the group of a frame. Marks stay. */
static struct error *group_frame(struct stack_map *map, uint32_t frame, uint32_t *shown)
{
    struct model *m = map->model;
    const struct emit_frame *recorded = &m->frames.data[frame];
    struct model_frame group = {.kind = recorded->kind, .mapping = EMIT_NO_MAPPING};
    struct buf name = {0};

    *shown = frame;
    if (recorded->kind == EMIT_MARK)
        return NULL;
    if (!limits_work(m->limits, 100 + strlen(recorded->file) + strlen(recorded->module)))
        return error_no_memory();
    stack_group_name(map->options->group, recorded, &name);
    group.function = name.bad ? MODEL_NONE : model_text(m, (const char *)name.data, name.len_bytes);
    buf_deinit(&name);
    *shown = group.function == MODEL_NONE ? MODEL_NONE : model_frame(m, &group);
    return *shown == MODEL_NONE ? error_no_memory() : NULL;
}

struct error *stack_group(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept)
{
    size_t count = 0;

    (void)label_set;
    (void)kept;
    for (size_t i = 0; i < list->count; i++) {
        uint32_t group, frame = list->data[i];
        if (!VEC_EXTEND_ZERO(&map->groups, (size_t)frame + 1))
            return error_no_memory();
        if (!map->groups.data[frame].known) {
            TRY(group_frame(map, frame, &group));
            map->groups.data[frame] = (struct stack_map_entry){.number = group, .known = true};
        }
        group = map->groups.data[frame].number;
        if (!count || list->data[count - 1] != group)
            list->data[count++] = group;
    }
    list->count = count;
    return NULL;
}

/* ---- --collapse-recursion ---- */

bool stack_collapses(const struct stack_map_options *o)
{
    return o->collapse_recursion;
}

/* One function, whichever line of it. */
static bool is_same_function(const struct model *m, uint32_t a, uint32_t b)
{
    const struct emit_frame *fa = &m->frames.data[a], *fb = &m->frames.data[b];

    /* Equal texts have one address. */
    return a == b || (fa->kind == fb->kind && fa->function == fb->function && fa->file == fb->file &&
                      fa->module == fb->module && *fa->function);
}

/* Whether the last `len` frames of a list are calls of the `len` functions before them. */
static bool repeats(const struct model *m, const uint32_t *end, size_t len)
{
    for (size_t i = 1; i <= len; i++) {
        if (!is_same_function(m, end[-(ptrdiff_t)i], end[-(ptrdiff_t)(len + i)]))
            return false;
    }
    return true;
}

/* Of each cycle the innermost round stays, with the lines where the time was spent. */
struct error *stack_collapse(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept)
{
    size_t count = 0;

    (void)label_set;
    (void)kept;
    if (!limits_work(map->model->limits, list->count * (uint64_t)STACK_CYCLE_MAX * 4))
        return error_no_memory();
    for (size_t i = 0; i < list->count; i++) {
        list->data[count++] = list->data[i];
        for (size_t len = 1; len <= STACK_CYCLE_MAX && 2 * len <= count; len++) {
            if (!repeats(map->model, list->data + count, len))
                continue;
            memmove(list->data + count - 2 * len, list->data + count - len, len * sizeof *list->data);
            count -= len;
            break;
        }
    }
    list->count = count;
    return NULL;
}
