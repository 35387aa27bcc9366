/* Entries of several statements. Lua's reading wins, as in a file; beyond it,
 * at the top level a list of expressions is a statement, too, that begins a
 * row or stands behind a ';' and ends so. One that ends its row shows its
 * values when it is reached, for it becomes the argument of a call: all of the
 * entry is one chunk, with its locals, labels and lines. */
#include "parse.h"

#include "lauxlib.h"
#include <stdlib.h>
#include <string.h>

#define SHOWN "lumat_echo"
#define SILENT "lumat_echo_silent"

/* Registry: the last entry's tokens; the names that it sets silently. */
static const char tokens_key, silenced_key;

/* --- echoes --------------------------------------------------------------- */

static lumat_echo_fn *echo;

void lumat_set_echo(lumat_echo_fn *function)
{
    echo = function;
}

static int echo_shown(lua_State *L)
{
    if (echo)
        echo(L, 1);
    return 0;
}

static int echo_silent(lua_State *L)
{
    if (echo)
        echo(L, 0);
    return 0;
}

int lumat_push_echo(lua_State *L, const char *name)
{
    int is_shown = strcmp(name, SHOWN) == 0;
    if (is_shown || strcmp(name, SILENT) == 0)
        lua_pushcfunction(L, is_shown ? echo_shown : echo_silent);
    return is_shown || strcmp(name, SILENT) == 0;
}

int lumat_is_echo(const lumat_tokens *t, int i)
{
    return lumat_at(t, i, SHOWN " " SILENT);
}

/* --- statements ----------------------------------------------------------- */

static int begins_expressions(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i);
    if (lumat_at(t, i, "function"))
        return lumat_kind_at(t, i + 1) != LUMAT_NAME;
    return kind == LUMAT_NAME || kind == LUMAT_NUMBER || kind == LUMAT_STRING ||
           lumat_at(t, i, "( { - # ~ ... not nil true false");
}

/* Behind a statement. *has_values: it is a list of expressions; one of them
 * that is a call is a statement of Lua's as well. */
static int skip_statement(const lumat_tokens *t, int i, int *has_values)
{
    *has_values = begins_expressions(t, i);
    if (!*has_values)
        return lumat_skip_statement(t, i);
    i = lumat_skip_expressions(t, i);
    if (!lumat_at(t, i, "="))
        return i;
    *has_values = 0;
    return lumat_skip_expressions(t, i + 1);
}

/* Does the token begin a row? */
static int begins_row(const lumat_tokens *t, int i)
{
    return lumat_count_lines(lumat_behind(t, i), lumat_start_of(t, i)) > 0;
}

static int is_apart(const lumat_tokens *t, int i)
{
    return i == t->count || lumat_at(t, i, ";") || begins_row(t, i);
}

static int compiles(lua_State *L, const char *lead, const char *text,
                    size_t length)
{
    lua_pushstring(L, lead);
    lua_pushlstring(L, text, length);
    lua_concat(L, 2);
    text = lua_tolstring(L, -1, &length);
    int status = luaL_loadbufferx(L, text, length, "=entry", "t");
    lua_pop(L, 2);
    return status == LUA_OK;
}

typedef struct writer {
    lua_State *L;
    const lumat_tokens *t;
    luaL_Buffer text;
    const char *written; /* so far of the entry */
    int is_behind;       /* a statement, and no separator */
    int closes;          /* a variable is closed at the end of the entry */
    lumat_echoes result;
} writer;

static void write_up_to(writer *w, const char *end)
{
    luaL_addlstring(&w->text, w->written, (size_t)(end - w->written));
    w->written = end;
}

/* local x <close> = … */
static int has_close(const lumat_tokens *t, int first, int end)
{
    if (!lumat_at(t, first, "local"))
        return 0;
    for (int i = first + 1; i < end; i++)
        if (lumat_at(t, i - 1, "<") && lumat_at(t, i, "close"))
            return 1;
    return 0;
}

/* Writes the expressions first .. end - 1. Returns the token behind them and
 * what separates them from the next. */
static int write_expressions(writer *w, int first, int end)
{
    const lumat_tokens *t = w->t;
    const char *behind = lumat_behind(t, end);
    int is_silent = lumat_at(t, end, ";") || !is_apart(t, end);
    w->is_behind = !lumat_at(t, end, ";");
    while (lumat_at(t, end, ";"))
        end++;
    write_up_to(w, lumat_start_of(t, first));
    if (end == t->count && !w->closes) {
        luaL_addstring(&w->text, "return ");
        write_up_to(w, behind);
        w->written = lumat_behind(t, end); /* a comment may be open there */
        return end;
    }
    luaL_addstring(&w->text, is_silent ? SILENT "(" : SHOWN "(");
    write_up_to(w, behind);
    luaL_addstring(&w->text, ");"); /* a row behind it may begin with "(" */
    return end;
}

/* Writes the statement at token i and returns the one behind it, or -1 where
 * expressions do not stand apart from what is around them: only a call may. */
static int write_statement(writer *w, int i)
{
    const lumat_tokens *t = w->t;
    int begins_apart = !w->is_behind || begins_row(t, i), has_values;
    int end = skip_statement(t, i, &has_values);
    const char *start = lumat_start_of(t, i);
    size_t length = (size_t)(lumat_behind(t, end) - start);
    w->is_behind = !lumat_at(t, i, ";");
    w->closes |= has_close(t, i, end);
    if (!has_values)
        return end;
    if ((!begins_apart || !is_apart(t, end)) &&
        !compiles(w->L, "", start, length)) {
        if (compiles(w->L, "return ", start, length))
            w->result.refused = i;
        return -1;
    }
    return write_expressions(w, i, end);
}

/* --- what is silent ------------------------------------------------------- */

/* Notes the names that the statement gives a value. */
static void note_given(lua_State *L, int silenced, const lumat_tokens *t,
                       int first, int end)
{
    lumat_push_given(L, t, first, end);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        if (lumat_at(t, end, ";"))
            lua_pushboolean(L, 1);
        else
            lua_pushnil(L);
        lua_rawset(L, silenced);
    }
    lua_pop(L, 1);
}

void lumat_note_silenced(lua_State *L, const lumat_tokens *t)
{
    lua_newtable(L);
    int silenced = lua_gettop(L), has_values;
    for (int i = 0, end; i < t->count; i = end) {
        end = skip_statement(t, i, &has_values);
        note_given(L, silenced, t, i, end);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &silenced_key);
}

int lumat_is_silenced(lua_State *L, const char *name)
{
    int found = 0;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &silenced_key) == LUA_TTABLE) {
        found = lua_getfield(L, -1, name) != LUA_TNIL;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return found;
}

/* --- the entry ------------------------------------------------------------ */

lumat_echoes lumat_push_echoing(lua_State *L, int tokens)
{
    const lumat_tokens *t = lua_touserdata(L, tokens);
    writer w = {.L = L, .t = t, .written = t->text};
    lua_pushvalue(L, tokens);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &tokens_key);
    luaL_buffinit(L, &w.text);
    w.result =
        (lumat_echoes){.shown = !lumat_at(t, t->count - 1, ";"), .refused = -1};
    for (int i = 0; i >= 0 && i < t->count;)
        i = write_statement(&w, i);
    write_up_to(&w, t->text + t->length);
    luaL_pushresult(&w.text);
    return w.result;
}

/* --- rows that go on ------------------------------------------------------ */

enum { MOST_BYTES = 30 }; /* of a row that is quoted */

/* Where a row goes on with what would be complete without it. */
typedef struct seam {
    size_t before, behind; /* the end of the one, the start of the other */
    int line, next_line;
} seam;

/* Token i, behind such a one? A number cannot be called, but something may be
 * subtracted from it. */
static int goes_on(const lumat_tokens *t, int i)
{
    int last = lumat_kind_at(t, i - 1);
    int is_suffix =
        lumat_kind_at(t, i) == LUMAT_STRING || lumat_at(t, i, "( [ {");
    int is_called = last == LUMAT_NAME || last == LUMAT_STRING ||
                    lumat_at(t, i - 1, ") ] }");
    return lumat_ends_operand(t, i - 1) &&
           (lumat_at(t, i, "-") || (is_suffix && is_called));
}

static int last_line(const lumat_tokens *t, int i)
{
    const char *start = lumat_start_of(t, i);
    return t->list[i].line +
           lumat_count_lines(start, start + lumat_length_of(t, i));
}

/* The first seam between the lines, in no bracket. Returns 0 without one. */
static int find_seam(const lumat_tokens *t, int from, int to, seam *out)
{
    lumat_nesting nesting = {0};
    for (int i = 0; i < t->count; i++) {
        int line = t->list[i].line, above = i > 0 ? last_line(t, i - 1) : 1;
        int in_bracket = strpbrk(lumat_innermost(&nesting), "([{") != NULL;
        if (line > above && line >= from && line <= to && !in_bracket &&
            goes_on(t, i)) {
            *out = (seam){t->list[i - 1].end, t->list[i].start, above, line};
            return 1;
        }
        lumat_nest(&nesting, t->text, &t->list[i]);
    }
    return 0;
}

/* The statement of the top level that has the line; where it ends. */
static int find_statement(const lumat_tokens *t, int line, int *end)
{
    int first = 0, has_values;
    *end = 0;
    while (*end < t->count && t->list[*end].line <= line) {
        first = *end;
        *end = skip_statement(t, first, &has_values);
    }
    return first;
}

/* In a function or loop Lua names the line of one of the two rows. */
static int find_seam_at(const lumat_tokens *t, int line, seam *out)
{
    int end, first = find_statement(t, line, &end), from = line, to = line;
    if (end > first) {
        from = t->list[first].line;
        to = last_line(t, end - 1);
    }
    if (!begins_expressions(t, first) && !lumat_at(t, first, "local"))
        to = line + 1 < to ? line + 1 : to, from = line;
    return find_seam(t, from, to, out);
}

/* The line that a message about an entry begins with, or 0. */
static int line_of(const char *message)
{
    int line;
    lumat_skip_place(message, &line);
    return line;
}

/* What of a row is quoted: its last bytes, or its first. */
static const char *push_tail(lua_State *L, const char *text, size_t end)
{
    size_t start = end;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    start += strspn(text + start, " \t");
    if (end - start <= MOST_BYTES)
        return lua_pushlstring(L, text + start, end - start);
    for (start = end - MOST_BYTES; (text[start] & 0xC0) == 0x80; start++)
        continue;
    return lua_pushfstring(L, "...%s",
                           lua_pushlstring(L, text + start, end - start));
}

static const char *push_head(lua_State *L, const char *text, size_t start,
                             size_t length)
{
    const char *newline = memchr(text + start, '\n', length - start);
    size_t end = newline ? (size_t)(newline - text) : length;
    if (end - start <= MOST_BYTES)
        return lua_pushlstring(L, text + start, end - start);
    for (end = start + MOST_BYTES; (text[end] & 0xC0) == 0x80; end--)
        continue;
    return lua_pushfstring(L, "%s...",
                           lua_pushlstring(L, text + start, end - start));
}

void lumat_explain_rows(lua_State *L)
{
    int top = lua_gettop(L);
    seam found;
    if (lua_type(L, top) != LUA_TSTRING || line_of(lua_tostring(L, top)) == 0 ||
        lua_rawgetp(L, LUA_REGISTRYINDEX, &tokens_key) != LUA_TUSERDATA) {
        lua_settop(L, top);
        return;
    }
    const char *message = lua_tostring(L, top);
    const lumat_tokens *t = lua_touserdata(L, top + 1);
    if (find_seam_at(t, line_of(message), &found)) {
        const char *tail = push_tail(L, t->text, found.before);
        const char *head = push_head(L, t->text, found.behind, t->length);
        lua_pushfstring(L,
                        "%s\n  rows %d and %d are one statement to Lua: %s %s\n"
                        "  a ; at the end of row %d parts them",
                        message, found.line, found.next_line, tail, head,
                        found.line);
        lua_replace(L, top);
    }
    lua_settop(L, top);
}
