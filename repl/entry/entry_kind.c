/* What kind of entry was typed, whether it is complete, and where the first of
 * several ends. */
#include "entry.h"

#include <string.h>

const char *repl_skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* A name, such as A.T or :who, and a question mark right behind it. */
static int asks_for_name(const char *start)
{
    size_t length = strcspn(start, "?");
    const char *behind = start + length + strspn(start + length, "?");
    return length > 0 && start[length] == '?' &&
           strspn(start, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789_.:") == length &&
           strchr("0123456789.", start[0]) == NULL &&
           behind[strspn(behind, " \t\r\n")] == '\0';
}

/* "::" opens a Lua label. */
repl_entry_kind repl_entry_kind_of(const char *text, const char **rest)
{
    const char *start = repl_skip_blanks(text);
    repl_entry_kind kind = REPL_LUA;
    size_t mark = 0;
    if (start[strspn(start, " \t\r\n")] == '\0')
        kind = REPL_BLANK;
    else if (asks_for_name(start))
        kind = REPL_HELP;
    else if (start[0] == '!' || (start[0] == ':' && start[1] == '!'))
        kind = REPL_SHELL, mark = start[0] == '!' ? 1 : 2;
    else if (start[0] == ':' && start[1] != ':')
        kind = REPL_COMMAND, mark = 1;
    else if (start[0] == '?' && start[1] == '?')
        kind = REPL_SEARCH, mark = 2;
    else if (start[0] == '?')
        kind = REPL_HELP, mark = 1;
    *rest = repl_skip_blanks(start + mark);
    return kind;
}

/* --- complete or not ------------------------------------------------------ */

typedef struct piece {
    const char *text;
    size_t length;
} piece;

static int judge(lua_State *L)
{
    const piece *p = lua_touserdata(L, 1);
    int shown;
    lua_pushlstring(L, p->text, p->length);
    lua_pushinteger(L, repl_load_entry(L, lua_tostring(L, -1), &shown));
    return 1;
}

/* Memory may be short: then nothing is missing. */
static int is_open(lua_State *L, const char *text, size_t length)
{
    piece p = {text, length};
    int open;
    lua_pushcfunction(L, judge);
    lua_pushlightuserdata(L, &p);
    open = lua_pcall(L, 1, 1, 0) == LUA_OK &&
           lua_tointeger(L, -1) == LUMAT_INCOMPLETE;
    lua_pop(L, 1);
    return open;
}

int repl_is_incomplete(lua_State *L, const char *text)
{
    const char *rest;
    return repl_entry_kind_of(text, &rest) == REPL_LUA &&
           is_open(L, text, strlen(text));
}

/* --- rows ----------------------------------------------------------------- */

static const char *row_end(const char *text)
{
    return text + strcspn(text, "\n");
}

/* Whether the row that text begins with is a command or a question, and not a
 * method's call that goes on with the row above: that has its argument right
 * behind the name, or a string or table that no command takes. */
static int is_command_row(const char *text)
{
    const char *rest, *behind;
    repl_entry_kind kind = repl_entry_kind_of(text, &rest);
    size_t length;
    if (kind != REPL_COMMAND)
        return kind == REPL_HELP || kind == REPL_SEARCH || kind == REPL_SHELL;
    length = strspn(rest, "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (length == 0 || strchr(" \t\r\n", rest[length]) == NULL)
        return 0;
    behind = repl_skip_blanks(rest + length);
    return repl_find_command(rest, length) != NULL || *behind == '\0' ||
           strchr("([{\"'", *behind) == NULL;
}

/* What Lua a command takes may go on in the rows below. */
static int takes_lua(const char *name)
{
    const repl_command *command =
        repl_find_command(name, strcspn(name, " \t\r\n"));
    return command != NULL && command->argument >= REPL_EXPRESSION;
}

static const char *command_end(lua_State *L, const char *text, const char *rest)
{
    const char *argument = rest + strcspn(rest, " \t\r\n");
    const char *end = row_end(text);
    while (*end != '\0' && takes_lua(rest) && argument < end &&
           is_open(L, argument, (size_t)(end - argument)))
        end = row_end(end + 1);
    return end;
}

/* Rows of Lua, from the second on. */
typedef struct rows {
    const char *text;
    size_t length;
    lumat_token token; /* the blanks in front of the row */
    lumat_nesting nesting;
} rows;

/* The next row that is a command and stands neither in a string or comment nor
 * in a construct; or NULL. */
static const char *next_command_row(rows *r)
{
    while (lumat_next_token(r->text, r->length, &r->token)) {
        const char *start = r->text + r->token.start, *newline;
        lumat_nest(&r->nesting, r->text, &r->token);
        if (r->token.kind != LUMAT_BLANK || r->nesting.depth > 0)
            continue;
        newline = memrchr(start, '\n', r->token.end - r->token.start);
        if (newline != NULL && is_command_row(newline + 1))
            return newline + 1;
    }
    return NULL;
}

const char *repl_find_command_row(const char *text)
{
    rows r = {.text = text, .length = strlen(text)};
    return is_command_row(text) ? text : next_command_row(&r);
}

/* In front of the first command that does not stand where Lua is lacking. */
static const char *lua_end(lua_State *L, const char *text, const char *end)
{
    rows r = {.text = text, .length = (size_t)(end - text)};
    while (next_command_row(&r) != NULL)
        if (!is_open(L, text, r.token.start))
            return text + r.token.start;
    return end;
}

size_t repl_first_entry(lua_State *L, const char *text)
{
    const char *start = text, *rest, *end = text + strlen(text);
    repl_entry_kind kind;
    while (start < end && start[strspn(start, " \t\r")] == '\n')
        start = row_end(start) + 1;
    kind = repl_entry_kind_of(start, &rest);
    if (kind == REPL_LUA)
        end = lua_end(L, start, end);
    else if (kind == REPL_COMMAND)
        end = command_end(L, start, rest);
    else if (kind != REPL_BLANK)
        end = row_end(start);
    if (end[strspn(end, " \t\r\n")] == '\0')
        end += strlen(end);
    return (size_t)(end - text);
}
