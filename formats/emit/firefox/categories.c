/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/firefox/categories.h"

#include <string.h>

#include "formats/emit/json.h"

/* Colours are names that the Profiler knows. It takes the first grey one for its default, and draws nothing for waits. */
static const struct {
    const char *name, *colour;
} categories[FIREFOX_CATEGORIES] = {
    [FIREFOX_PYTHON] = {"Python", "blue"},         [FIREFOX_NATIVE] = {"Native", "yellow"},
    [FIREFOX_KERNEL] = {"Kernel", "magenta"},      [FIREFOX_WAITING] = {"Waiting", "transparent"},
    [FIREFOX_OTHER] = {"Other", "grey"},
};

void firefox_categories_deinit(struct firefox_categories *c)
{
    for (int i = 0; i < FIREFOX_CATEGORIES; i++)
        intern_deinit(&c->below[i]);
}

enum firefox_category firefox_category_of(const struct emit_frame *f)
{
    static const enum firefox_category of_kind[] = {[EMIT_PYTHON] = FIREFOX_PYTHON,
                                                    [EMIT_NATIVE] = FIREFOX_NATIVE,
                                                    [EMIT_KERNEL] = FIREFOX_KERNEL,
                                                    [EMIT_MARK] = FIREFOX_OTHER};

    if (!f)
        return FIREFOX_OTHER;
    return f->kind == EMIT_MARK && f->wait ? FIREFOX_WAITING : of_kind[f->kind];
}

bool firefox_subcategory_of(struct firefox_categories *c, const struct emit_frame *f, uint32_t *subcategory)
{
    enum firefox_category category = firefox_category_of(f);
    const char *name = category == FIREFOX_WAITING ? f->wait : category == FIREFOX_NATIVE ? f->builtin : NULL;

    *subcategory = 0;
    if (!name)
        return true;
    uint32_t id = intern_id(&c->below[category], name, (uint32_t)strlen(name) + 1, NULL);
    *subcategory = id + 1;
    return id != INTERN_NONE;
}

void firefox_categories_put(const struct firefox_categories *c, struct buf *out)
{
    buf_put_u8(out, '[');
    for (int i = 0; i < FIREFOX_CATEGORIES; i++) {
        buf_printf(out, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"", i ? "," : "", categories[i].name,
                   categories[i].colour);
        for (uint32_t k = 0; k < c->below[i].count; k++) {
            buf_put_u8(out, ',');
            json_put_foreign((const char *)intern_get(&c->below[i], k)->data, out);
        }
        buf_put_str(out, "]}");
    }
    buf_put_u8(out, ']');
}
