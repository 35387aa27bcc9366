/* The list of offers: what may stand at the cursor is gathered, put in order,
 * and told with its notes. */
#include "complete_parts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 16 };

typedef struct lumat_item {
    const char *name, *note;
    uint64_t head[2]; /* its first bytes as numbers, which compare like them */
    const gpu_matrix *dense; /* the note is on its kind */
    const gpu_sparse *sparse;
    int rank, order;
} item;

void lumat_open_gather(lumat_gather *g, lua_State *L, const char *prefix,
                       size_t length)
{
    *g = (lumat_gather){.L = L, .prefix = prefix, .length = length};
    lua_newtable(L);
    g->kept = lua_gettop(L);
    lua_pushnil(L);
    g->slot = lua_gettop(L);
}

static void add(lumat_gather *g, item added)
{
    if (g->count == g->room) {
        int room = g->room * 2 + 64;
        item *items = lua_newuserdatauv(g->L, (size_t)room * sizeof *items, 0);
        if (g->count > 0)
            memcpy(items, g->items, (size_t)g->count * sizeof *items);
        lua_replace(g->L, g->slot);
        g->items = items;
        g->room = room;
    }
    const char *p = added.name;
    for (int i = 0; i < HEAD; i++)
        added.head[i / 8] =
            added.head[i / 8] << 8 | (*p ? (unsigned char)*p++ : 0);
    added.order = g->count;
    g->items[g->count++] = added;
}

static int begins(const lumat_gather *g, const char *name, size_t length)
{
    return length >= g->length && memcmp(name, g->prefix, g->length) == 0;
}

void lumat_gather_name(lumat_gather *g, const char *name, const char *note)
{
    if (begins(g, name, strlen(name)))
        add(g, (item){.name = name, .note = note, .rank = LUMAT_LATER});
}

const char *lumat_keep(lumat_gather *g)
{
    const char *text = lua_tostring(g->L, -1);
    lua_rawseti(g->L, g->kept, (lua_Integer)lua_rawlen(g->L, g->kept) + 1);
    return text;
}

void lumat_gather_copy(lumat_gather *g, const char *name, size_t length,
                       const char *note)
{
    if (!begins(g, name, length))
        return;
    lua_pushlstring(g->L, name, length);
    lumat_gather_name(g, lumat_keep(g), note);
}

void lumat_gather_words(lumat_gather *g, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        lumat_gather_copy(g, p, n, NULL);
        p += n + strspn(p + n, " ");
    }
}

void lumat_gather_value(lumat_gather *g, const char *name, int rank)
{
    const gpu_matrix *m = lumat_test_matrix(g->L, -1);
    const gpu_sparse *s = lumat_look_at_sparse(g->L, -1);
    if (begins(g, name, strlen(name)))
        add(g, (item){.name = name,
                      .dense = m && m->storage ? m : NULL,
                      .sparse = s && s->values.storage ? s : NULL,
                      .rank = rank});
}

/* --- in order ------------------------------------------------------------- */

static int compare_names(const item *x, const item *y)
{
    for (int i = 0; i < 2; i++)
        if (x->head[i] != y->head[i])
            return x->head[i] < y->head[i] ? -1 : 1;
    /* without a last zero they go on */
    return (x->head[1] & 0xff) == 0 ? 0
                                    : strcmp(x->name + HEAD, y->name + HEAD);
}

static int by_name(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = compare_names(x, y);
    return order ? order : x->order - y->order;
}

/* Of equal names the first stays. */
static void drop_doubles(lumat_gather *g)
{
    int kept = 0;
    for (int i = 0; i < g->count; i++)
        if (kept == 0 || compare_names(&g->items[kept - 1], &g->items[i]) != 0)
            g->items[kept++] = g->items[i];
    g->count = kept;
}

/* Pushes "f32 3x4 cpu". */
static void push_kind(lua_State *L, const item *i)
{
    const gpu_matrix *m = i->dense ? i->dense : &i->sparse->values;
    lua_pushfstring(L, "%s %s%s %s", gpu_dtype_name(m->dtype),
                    i->dense ? gpu_shape_text(m)
                             : gpu_size_text(i->sparse->rows, i->sparse->cols),
                    i->dense ? "" : " sparse",
                    gpu_device_name(gpu_matrix_device(m)));
}

/* Pushes "f32 3x4 cpu  fits". */
static const char *push_note(const lumat_gather *g, const item *i)
{
    lua_State *L = g->L;
    if (!i->dense && !i->sparse)
        return lua_pushstring(L, i->note ? i->note : "");
    push_kind(L, i);
    if (i->rank != LUMAT_FITS && i->rank != LUMAT_TURNED)
        return lua_tostring(L, -1);
    lua_pushliteral(L, "  ");
    if (i->rank == LUMAT_TURNED)
        lua_pushfstring(L, "%s.T fits", i->name);
    else
        lumat_push_fit(L, &g->partner, i->dense);
    lua_concat(L, 3);
    return lua_tostring(L, -1);
}

/* Reports those of two ranks. No screen has room for more notes. */
static int report(const lumat_gather *g, int low, int high, lumat_name_fn *each,
                  void *data)
{
    enum { NOTED = 500 };
    int count = 0;
    for (int i = 0; i < g->count; i++) {
        const item *offered = &g->items[i];
        if (offered->rank < low || offered->rank > high)
            continue;
        if (count++ >= NOTED) {
            each(data, offered->name, "");
            continue;
        }
        each(data, offered->name, push_note(g, offered));
        lua_pop(g->L, 1);
    }
    return count;
}

int lumat_end_gather(lumat_gather *g, lumat_name_fn *each, void *data)
{
    if (g->count == 0)
        return 0;
    qsort(g->items, (size_t)g->count, sizeof *g->items, by_name);
    drop_doubles(g);
    int fitting = report(g, LUMAT_FITS, LUMAT_FITS, each, data);
    report(g, LUMAT_TURNED, LUMAT_LATER, each, data);
    return fitting;
}
