/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/perf_data/addresses.h"

#include <string.h>

#include "formats/base/utf8.h"
#include "formats/emit/names.h"
#include "formats/emit/perf_data/records.h"

#define PAGE_MASK UINT64_C(0xfff)
#define SEGMENT_EXECUTABLE 1u
/* Bases are multiples of this. */
#define BASE_STEP (UINT64_C(1) << 20)
/* Relocatable binaries lie above the code images, one after the other, up to the end of user space. */
#define FIRST_BASE (ADDRESSES_IMAGE_BASE << 1)
#define END_BASE (UINT64_C(1) << 46)

_Static_assert(ADDRESSES_IMAGE_BASE + CODE_IMAGES_MAX * (uint64_t)CODE_IMAGE_MAX_BYTES <= FIRST_BASE, "they do not overlap");

enum { INLINED_MAX = 64 }; /* functions at one address; in a recursion the same ones come again and again */

void addresses_init(struct addresses *p, const struct emit_model *model, struct limits *limits, struct code_images *images,
                    struct kernel_names *kernel)
{
    *p = (struct addresses){.model = model,
                            .limits = limits,
                            .images = images,
                            .kernel = kernel,
                            .paths.arena.limits = limits,
                            .next_base = FIRST_BASE};
}

void addresses_deinit(struct addresses *p)
{
    VEC_DEINIT(&p->frames);
    VEC_DEINIT(&p->binaries);
    intern_deinit(&p->paths);
}

const struct address_binary *addresses_binary(const struct addresses *p, uint32_t mapping)
{
    return &p->binaries.data[mapping];
}

/* ---- binaries ---- */

static bool begins(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

/* Can readers find a file by that path? They take some paths for memory without a file (perf: util/map.c). */
static bool is_path_of_file(const char *path, size_t len)
{
    static const char *const memory[] = {"//", "/dev/", "/SYSV", "/memfd:", "/anon_hugepage", "/tmp/perf-"};

    if (*path != '/' || len >= RECORDS_NAME_MAX)
        return false;
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        if (begins(path, memory[i]))
            return false;
    }
    return utf8_is_printable(path, len);
}

static bool is_sane(const struct emit_segment *s)
{
    return s->vaddr < END_BASE && s->memory_size < END_BASE && s->file_offset < END_BASE && s->file_size < END_BASE &&
           ((s->vaddr ^ s->file_offset) & PAGE_MASK) == 0;
}

/* The virtual addresses of a binary from its lowest on; false: they make no sense. */
static bool find_extent(const struct emit_mapping *m, uint64_t *lowest, uint64_t *end)
{
    *lowest = UINT64_MAX;
    *end = 0;
    for (uint32_t i = 0; i < m->segment_count; i++) {
        const struct emit_segment *s = &m->segments[i];
        uint64_t size = s->memory_size > s->file_size ? s->memory_size : s->file_size;
        if (!is_sane(s))
            return false;
        if (s->vaddr < *lowest)
            *lowest = s->vaddr;
        if (s->vaddr + size > *end)
            *end = s->vaddr + size;
    }
    return *end;
}

static bool choose_base(struct addresses *p, const struct emit_mapping *m, uint64_t *base)
{
    uint64_t lowest, end;

    *base = 0;
    if (!find_extent(m, &lowest, &end))
        return false;
    if (lowest > PAGE_MASK) /* it is not relocatable */
        return end <= ADDRESSES_IMAGE_BASE;
    if (end > END_BASE - p->next_base)
        return false;
    *base = p->next_base;
    p->next_base += (end + BASE_STEP - 1) & ~(BASE_STEP - 1);
    return true;
}

static bool is_code(const struct emit_segment *s)
{
    return (s->flags & SEGMENT_EXECUTABLE) && s->file_size;
}

static void list_areas(const struct emit_mapping *m, struct address_binary *b)
{
    for (uint32_t i = 0; i < m->segment_count && b->area_count < ADDRESSES_AREAS_MAX; i++) {
        const struct emit_segment *s = &m->segments[i];
        uint64_t skew = s->file_offset & PAGE_MASK;
        if (is_code(s))
            b->areas[b->area_count++] = (struct address_area){.start = b->base + s->vaddr - skew,
                                                            .len_bytes = (s->file_size + skew + PAGE_MASK) & ~PAGE_MASK,
                                                            .file_offset = s->file_offset - skew};
    }
}

static struct error *look_up_binary(struct addresses *p, uint32_t mapping)
{
    const struct emit_mapping *m = &p->model->mappings[mapping];
    struct address_binary *b = &p->binaries.data[mapping];

    b->known = true;
    b->path_len = (uint32_t)name_path_len(m->path);
    if (!limits_work(p->limits, 100 + b->path_len + m->segment_count))
        return error_no_memory();
    /* Readers tell binaries apart by their paths: of a second one with the same path the code image has the names. */
    if (!is_path_of_file(m->path, b->path_len) || intern_find(&p->paths, m->path, b->path_len) != INTERN_NONE ||
        !choose_base(p, m, &b->base))
        return NULL;
    list_areas(m, b);
    b->usable = b->area_count;
    return intern_id(&p->paths, m->path, b->path_len, NULL) != INTERN_NONE ? NULL : error_no_memory();
}

/* False: the frame has no address in its binary. */
static struct error *find_in_binary(struct addresses *p, const struct emit_frame *f, struct address *out, bool *found)
{
    uint64_t offset = f->address - f->return_address;

    *found = false;
    if (!VEC_EXTEND_COUNTED(p->limits, &p->binaries, (size_t)f->mapping + 1))
        return error_no_memory();
    struct address_binary *b = &p->binaries.data[f->mapping];
    if (!b->known)
        TRY(look_up_binary(p, f->mapping));
    if (!b->usable)
        return NULL;
    const struct emit_mapping *m = &p->model->mappings[f->mapping];
    for (uint32_t i = 0, areas = 0; i < m->segment_count && areas < b->area_count && !*found; i++) {
        const struct emit_segment *s = &m->segments[i];
        if (!is_code(s))
            continue;
        areas++;
        *found = offset >= s->file_offset && offset - s->file_offset < s->file_size;
        if (*found)
            *out = (struct address){ADDRESS_BINARY, f->mapping, b->base + s->vaddr + (offset - s->file_offset)};
    }
    return NULL;
}

/* ---- frames ---- */

static struct error *find_in_image(struct addresses *p, uint32_t frame, struct address *out)
{
    uint64_t address = 0;
    uint32_t image = 0;

    TRY(code_images_address(p->images, frame, &image, &address));
    *out = (struct address){ADDRESS_IMAGE, image, ADDRESSES_IMAGE_BASE + image * (uint64_t)CODE_IMAGE_MAX_BYTES + address};
    return NULL;
}

/* Stubs of the PLT have no symbol; pysym and perf make them names, not the same ones. */
static bool is_stub(const struct emit_frame *f)
{
    static const char end[] = "@plt";
    size_t len = strlen(f->function);

    return len >= sizeof end - 1 && !strcmp(f->function + len - (sizeof end - 1), end);
}

static struct error *find_frame(struct addresses *p, uint32_t frame, struct address *out)
{
    const struct emit_frame *f = &p->model->frames[frame];
    bool found = false;

    if (f->kind == EMIT_KERNEL && f->mapping != EMIT_NO_MAPPING) {
        *out = (struct address){.kind = ADDRESS_KERNEL};
        return kernel_names_address(p->kernel, frame, &out->ip);
    }
    if (f->kind == EMIT_NATIVE && f->mapping != EMIT_NO_MAPPING && !f->inlined && !is_stub(f) &&
        !code_images_have_binary(p->images, f))
        TRY(find_in_binary(p, f, out, &found));
    return found ? NULL : find_in_image(p, frame, out);
}

static bool is_same_address(const struct emit_frame *a, const struct emit_frame *b)
{
    return b->kind == EMIT_NATIVE && a->mapping == b->mapping && a->address == b->address &&
           a->return_address == b->return_address;
}

/* Sets *found if the function into which the innermost frame of `stack` was inlined is in the stack, in a binary. */
static struct error *find_host(struct addresses *p, uint32_t stack, bool *found)
{
    const struct emit_frame *frames = p->model->frames, *f = &frames[p->model->stacks[stack].frame];
    struct address host;

    *found = false;
    for (int i = 0; i < INLINED_MAX; i++) {
        stack = p->model->stacks[stack].parent;
        if (stack == EMIT_NO_STACK)
            return NULL;
        const struct emit_frame *outer = &frames[p->model->stacks[stack].frame];
        if (!is_same_address(f, outer))
            return NULL;
        if (outer->inlined)
            continue;
        TRY(addresses_find(p, stack, &host));
        *found = host.kind == ADDRESS_BINARY;
        return NULL;
    }
    return NULL;
}

struct error *addresses_find(struct addresses *p, uint32_t stack, struct address *out)
{
    if (stack == EMIT_NO_STACK)
        return find_in_image(p, CODE_IMAGE_NO_FRAMES, out);
    uint32_t frame = p->model->stacks[stack].frame;
    bool has_host = false;
    if (p->model->frames[frame].inlined)
        TRY(find_host(p, stack, &has_host));
    if (has_host) {
        *out = (struct address){.kind = ADDRESS_NONE};
        return NULL;
    }
    if (!VEC_EXTEND_COUNTED(p->limits, &p->frames, (size_t)frame + 1))
        return error_no_memory();
    struct address *address = &p->frames.data[frame];
    if (address->kind == ADDRESS_UNKNOWN)
        TRY(find_frame(p, frame, address));
    *out = *address;
    return NULL;
}

struct error *addresses_truncated(struct addresses *p, struct address *out)
{
    return find_in_image(p, CODE_IMAGE_TRUNCATED, out);
}
