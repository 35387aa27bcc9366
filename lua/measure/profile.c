/* The profile: every operation while it is on, added up by kind and by line of
 * Lua, and kept one by one for a timeline. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cancellation.h"
#include "fence.h"
#include "files.h"
#include "measure_parts.h"
#include "parse.h"
#include "team.h"
#include "value.h"

enum { LUMAT_LINE = 72 }; /* room for "file.lua:12" or the line of an entry */

typedef struct lumat_sum { /* what calls of one kind, or of one line, took */
    const char *operation, *kernel;
    const gpu_device *device;
    int devices; /* how many computed together, that being the first */
    gpu_dtype dtype;
    char line[LUMAT_LINE];
    uint64_t calls;
    double seconds, flops, bytes;
} lumat_sum;

typedef struct lumat_moment { /* one operation */
    int kind, line;           /* places in the lists of sums */
    double start, seconds;    /* since the profile began */
    double flops, bytes;
    int64_t m, n, k;
} lumat_moment;

enum { LUMAT_SUMS = 2048 }; /* of a list; the last one takes all others */

typedef struct lumat_profile {
    lumat_sum *kinds, *lines;
    int kind_count, line_count;
    lumat_moment *moments;
    size_t count, room, dropped;
} lumat_profile;

/* --- the line of Lua that issued an operation ----------------------------- */

/* The level of the innermost function written by the user, or -1. */
static int find_caller(lua_State *L, lua_Debug *ar)
{
    for (int level = 0; lua_getstack(L, level, ar); level++) {
        lua_getinfo(L, "Sl", ar);
        if (lumat_is_users(ar))
            return level;
    }
    return -1;
}

/* Takes away the first bytes of a character that was cut. */
static void end_whole(char line[LUMAT_LINE])
{
    size_t length = strlen(line);
    if (length < LUMAT_LINE - 1)
        return;
    while (length > 0 && (line[length - 1] & 0x80) != 0)
        line[--length] = '\0';
}

/* Line `number` of the entry that runs. */
static void entry_line(int number, char line[LUMAT_LINE])
{
    int entry;
    const char *text = lumat_running_entry(&entry);
    while (text && --number > 0 && (text = strchr(text, '\n')))
        text++;
    text = text ? text + strspn(text, " \t") : "";
    snprintf(line, LUMAT_LINE, "[%d] %.*s", entry, (int)strcspn(text, "\n"),
             text);
    end_whole(line);
}

/* The outermost function typed at the prompt is the entry itself. */
static int is_entry(lua_State *L, int level)
{
    lua_Debug ar;
    while (lua_getstack(L, ++level, &ar)) {
        lua_getinfo(L, "S", &ar);
        if (strcmp(ar.source, "=" LUMAT_CHUNK) == 0)
            return 0;
    }
    return 1;
}

/* Where the Lua code is that issued what happens now: "file.lua:12", at the
 * prompt "[3] C = A * B". */
static void find_line(char line[LUMAT_LINE])
{
    lua_State *L = lumat_running();
    lua_Debug ar;
    int level = L ? find_caller(L, &ar) : -1;
    if (level < 0) {
        strcpy(line, "?");
    } else if (strcmp(ar.source, "=" LUMAT_CHUNK) != 0) {
        snprintf(line, LUMAT_LINE, "%.56s:%d", ar.short_src, ar.currentline);
    } else if (is_entry(L, level)) {
        entry_line(ar.currentline, line);
    } else {
        lua_getinfo(L, "n", &ar);
        snprintf(line, LUMAT_LINE, "%.40s, line %d",
                 ar.name ? ar.name : "a function", ar.currentline);
    }
}

/* --- as a trace ----------------------------------------------------------- */
/* For Perfetto (ui.perfetto.dev) and chrome://tracing. Source of the format:
 * Trace Event Format, Google, 2016. */

static int put(lumat_atomic *a, const char *text)
{
    return lumat_atomic_write(a, text, strlen(text));
}

/* Text as a JSON string; bytes of UTF-8 stay as they are. */
static const char *quoted(const char *text, char out[6 * LUMAT_LINE + 3])
{
    char *p = out;
    *p++ = '"';
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            p += sprintf(p, "\\%c", c);
        else if (c < ' ')
            p += sprintf(p, "\\u%04x", c);
        else
            *p++ = (char)c;
    }
    strcpy(p, "\"");
    return out;
}

/* A row of the picture for each device: its place among the kinds' devices. */
static int row_of(const lumat_profile *p, const gpu_device *d)
{
    int i = 0;
    while (i < p->kind_count && p->kinds[i].device != d)
        i++;
    return i + 1;
}

static int write_rows(lumat_atomic *a, const lumat_profile *p)
{
    char text[200];
    for (int i = 0; i < p->kind_count; i++) {
        const gpu_device *d = p->kinds[i].device;
        if (row_of(p, d) != i + 1)
            continue;
        snprintf(text, sizeof text,
                 "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,"
                 "\"args\":{\"name\":\"%s\"}},\n",
                 i + 1, gpu_device_name(d));
        int error = put(a, text);
        if (error)
            return error;
    }
    return 0;
}

static int write_moment(lumat_atomic *a, const lumat_profile *p,
                        const lumat_moment *m)
{
    char text[1024], line[6 * LUMAT_LINE + 3];
    const lumat_sum *kind = &p->kinds[m->kind];
    snprintf(text, sizeof text,
             "{\"name\":\"%s %s\",\"cat\":\"operation\",\"ph\":\"X\","
             "\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
             "\"line\":%s,\"dtype\":\"%s\",\"m\":%lld,\"n\":%lld,"
             "\"k\":%lld,\"flops\":%.0f,\"bytes\":%.0f}},\n",
             kind->operation, kind->kernel, row_of(p, kind->device),
             m->start * 1e6, m->seconds * 1e6,
             quoted(p->lines[m->line].line, line), gpu_dtype_name(kind->dtype),
             (long long)m->m, (long long)m->n, (long long)m->k, m->flops,
             m->bytes);
    return put(a, text);
}

static int write_all(lumat_atomic *a, const lumat_profile *p)
{
    int error = put(a, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    if (!error)
        error = write_rows(a, p);
    for (size_t i = 0; i < p->count && !error; i++)
        error = write_moment(a, p, &p->moments[i]);
    if (!error)
        error = put(a, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,"
                       "\"args\":{\"name\":\"lumat\"}}\n]}\n");
    return error ? error : lumat_atomic_commit(a);
}

/* Writes all moments as a trace for Perfetto or chrome://tracing; returns 0 or
 * what errno said. */
static int write_trace(const lumat_profile *p, const char *path)
{
    lumat_atomic *a = malloc(sizeof *a);
    if (!a)
        return ENOMEM;
    int error = lumat_atomic_open(a, path);
    if (!error)
        error = write_all(a, p);
    if (error)
        lumat_atomic_abort(a);
    free(a);
    return error;
}

/* --- the profile ---------------------------------------------------------- */

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
           s->device == other->device && s->devices == other->devices &&
           s->dtype == other->dtype;
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
                      .devices = e->team->count,
                      .dtype = e->dtype};
    if (e->status != GPU_OK)
        return;
    find_line(what.line);
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
    lumat_hear(LUMAT_PROFILE, NULL); /* the last of what waits is heard of */
    elapsed = total_time();
    is_on = 0;
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

/* --- for profile_report.lua ----------------------------------------------- */

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
        lua_createtable(L, 0, 9);
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
        lua_pushinteger(L, s->devices);
        lua_setfield(L, -2, "devices");
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
    lumat_refuse_dry(L, "profile");
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
    int error = write_trace(&profile, lumat_expand_path(L, 1));
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
    luaL_newlib(L, own);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_profile);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lumat_set_required(L, "profile");
}
