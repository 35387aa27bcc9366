/* Elements read one by one: on a GPU each is a copy that costs what a million
 * of them cost in one. */
#include "slow_reads.h"
#include "parse.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counters by matrix and line; one in the way of another takes its place. */
enum { MOST = 1000, PLACES = 64 };

static struct place {
    const void *storage;
    const char *source; /* only compared */
    int line, count;
} places[PLACES];

static int is_strict, on_cpu_too;

void lumat_open_reads(lua_State *L, int strict)
{
    const char *where = getenv("LUMAT_COUNT_READS");
    (void)L;
    is_strict = strict;
    on_cpu_too = where && strcmp(where, "cpu") == 0;
}

/* Has this line been told before? From now on it has. */
static int was_told(const char *source, int line)
{
    static struct {
        const char *source;
        int line;
    } told[PLACES];
    size_t i = ((size_t)source / 16 * 31 + (size_t)line) % PLACES;
    int same = told[i].source == source && told[i].line == line;
    told[i].source = source;
    told[i].line = line;
    return same;
}

static struct place *find_place(const void *storage, const char *source,
                                int line)
{
    size_t number = (size_t)storage / 64 * 31 + (size_t)line;
    struct place *p = &places[number % PLACES];
    if (p->storage != storage || p->line != line || p->source != source)
        *p = (struct place){storage, source, line, 0};
    return p;
}

static void complain(lua_State *L, const lua_Debug *caller, const gpu_matrix *m)
{
    int top = lua_gettop(L);
    const char *name = lumat_name_of(L, 1, "a matrix");
    const char *device = gpu_device_name(gpu_matrix_device(m));
    const char *text = lua_pushfstring(
        L,
        "read %d elements of %s one by one, each a copy from %s; %s:totable() "
        "or %s:to(\"cpu\") copies them at once",
        MOST, name, device, name, name);
    if (is_strict)
        luaL_error(L, "%s", text);
    fflush(stdout);
    lumat_print_visible(stderr, "note: %s:%d %s\n", caller->short_src,
                        caller->currentline, text);
    lua_settop(L, top);
}

/* At the prompt people look at what they like. */
void lumat_count_read(lua_State *L, const gpu_matrix *m)
{
    lua_Debug caller;
    if (!on_cpu_too && gpu_device_is_cpu(gpu_matrix_device(m)))
        return;
    if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "Sl", &caller) ||
        caller.currentline < 1 || strcmp(caller.source, "=" LUMAT_CHUNK) == 0)
        return;
    struct place *p = find_place(m->storage, caller.source, caller.currentline);
    if (++p->count == MOST && (is_strict || !was_told(p->source, p->line)))
        complain(L, &caller, m);
}
