/* The profile: every operation while it is on, added up by kind and by line,
 * and kept one by one for a timeline. */
#include "profile.h"
#include "fence.h"
#include "files.h"
#include "records.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_MOMENTS = 1 << 20 };

static lumat_profile profile;
static double began;   /* by the clock */
static double elapsed; /* of earlier periods */
static int is_on;

static double total_time(void)
{
    return elapsed + (is_on ? gpu_now() - began : 0);
}

/* --- adding up ------------------------------------------------------------ */

static int is_kind(const lumat_sum *s, const lumat_sum *other)
{
    return s->operation == other->operation && s->kernel == other->kernel &&
           s->device == other->device && s->dtype == other->dtype;
}

static int is_line(const lumat_sum *s, const lumat_sum *other)
{
    return strcmp(s->line, other->line) == 0;
}

/* The place of what is like `other`; a new one when there is none yet. The
 * lists are short, and what is looked for was mostly added lately. */
static int find_sum(lumat_sum *sums, int *count, const lumat_sum *other,
                    int (*is_same)(const lumat_sum *, const lumat_sum *))
{
    for (int i = *count - 1; i >= 0; i--)
        if (is_same(&sums[i], other))
            return i;
    if (*count == LUMAT_SUMS)
        return LUMAT_SUMS - 1;
    sums[*count] = *other;
    return (*count)++;
}

static void add(lumat_sum *s, const gpu_event *e)
{
    s->calls++;
    s->seconds += e->seconds;
    s->flops += e->flops;
    s->bytes += e->bytes;
}

/* Short of memory, moments are counted only: sums stay right. */
static lumat_moment *next_moment(void)
{
    lumat_profile *p = &profile;
    if (p->count == p->room && p->room < MOST_MOMENTS) {
        size_t room = p->room ? 2 * p->room : 1024;
        lumat_moment *more = realloc(p->moments, room * sizeof *more);
        if (more) {
            p->moments = more;
            p->room = room;
        }
    }
    if (p->count < p->room)
        return &p->moments[p->count++];
    p->dropped++;
    return NULL;
}

static void hear(const gpu_event *e)
{
    lumat_profile *p = &profile;
    lumat_sum what = {.operation = e->operation,
                      .kernel = e->kernel,
                      .device = e->device,
                      .dtype = e->dtype};
    if (e->status != GPU_OK)
        return;
    lumat_find_line(what.line);
    int kind = find_sum(p->kinds, &p->kind_count, &what, is_kind);
    int line = find_sum(p->lines, &p->line_count, &what, is_line);
    add(&p->kinds[kind], e);
    add(&p->lines[line], e);
    lumat_moment *m = next_moment();
    if (m)
        *m = (lumat_moment){kind,       line,     total_time() - e->seconds,
                            e->seconds, e->flops, e->bytes,
                            e->m,       e->n,     e->k};
}

/* --- the switch ----------------------------------------------------------- */

static int allocate_sums(void)
{
    size_t bytes = LUMAT_SUMS * sizeof(lumat_sum);
    if (!profile.kinds)
        profile.kinds = malloc(bytes);
    if (!profile.lines)
        profile.lines = malloc(bytes);
    return profile.kinds && profile.lines;
}

static void turn_on(lua_State *L)
{
    if (!allocate_sums())
        luaL_error(L, "profile: out of memory");
    if (is_on)
        return;
    is_on = 1;
    began = gpu_now();
    lumat_hear(LUMAT_PROFILE, hear);
}

static void turn_off(void)
{
    elapsed = total_time();
    is_on = 0;
    lumat_hear(LUMAT_PROFILE, NULL);
}

static void reset(void)
{
    free(profile.moments);
    profile.moments = NULL;
    profile.count = profile.room = profile.dropped = 0;
    profile.kind_count = profile.line_count = 0;
    elapsed = 0;
    began = gpu_now();
}

/* --- for profile.lua ------------------------------------------------------ */

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void push_sums(lua_State *L, const lumat_sum *sums, int count,
                      int by_line)
{
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        const lumat_sum *s = &sums[i];
        lua_createtable(L, 0, 8);
        if (by_line) {
            set_text(L, "line", s->line);
        } else {
            set_text(L, "operation", s->operation);
            set_text(L, "kernel", s->kernel);
            set_text(L, "dtype", gpu_dtype_name(s->dtype));
            set_text(L, "device", gpu_device_name(s->device));
        }
        lua_pushinteger(L, (lua_Integer)s->calls);
        lua_setfield(L, -2, "calls");
        lumat_set_number(L, "seconds", s->seconds);
        lumat_set_number(L, "flops", s->flops);
        lumat_set_number(L, "bytes", s->bytes);
        lua_rawseti(L, -2, i + 1);
    }
}

/* read(): operations, lines, seconds since it began, is it on? */
static int read_profile(lua_State *L)
{
    push_sums(L, profile.kinds, profile.kind_count, 0);
    push_sums(L, profile.lines, profile.line_count, 1);
    lua_pushnumber(L, total_time());
    lua_pushboolean(L, is_on);
    return 4;
}

/* switch(word): on, off or reset */
static int switch_profile(lua_State *L)
{
    const char *word = luaL_checkstring(L, 1);
    if (strcmp(word, "on") == 0)
        turn_on(L);
    else if (strcmp(word, "off") == 0)
        turn_off();
    else
        reset();
    return 0;
}

/* write(path): how many operations were written and dropped */
static int write_profile(lua_State *L)
{
    int error = lumat_write_profile(&profile, lumat_expand_path(L, 1));
    if (error)
        return luaL_error(L, "%s", lumat_error_text(error));
    lua_pushinteger(L, (lua_Integer)profile.count);
    lua_pushinteger(L, (lua_Integer)profile.dropped);
    return 2;
}

/* What a state leaves behind must not show in the next one. */
static int end_profile(lua_State *L)
{
    (void)L;
    turn_off();
    reset();
    free(profile.kinds);
    free(profile.lines);
    profile.kinds = profile.lines = NULL;
    return 0;
}

void lumat_open_profile(lua_State *L)
{
    static const luaL_Reg own[] = {{"read", read_profile},
                                   {"switch", switch_profile},
                                   {"write", write_profile},
                                   {NULL, NULL}};
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    luaL_newlib(L, own);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_profile);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "lumat.profile");
    lua_pop(L, 1);
}
