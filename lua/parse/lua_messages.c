/* What Lua's own messages tell, which they do by their words alone. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

#define SAYS(name, words, ...) [LUMAT_LUA_##name] = words,
static const char *const rows[] = {
#include "lua_messages.def"
};

/* A row's words, without its ^ and $. */
typedef struct wanted {
    const char *words;
    size_t length;
    int is_begin, is_end;
} wanted;

static wanted row(lumat_lua_message kind)
{
    wanted w = {.words = rows[kind]};
    w.is_begin = *w.words == '^';
    w.words += w.is_begin;
    w.length = strlen(w.words);
    w.is_end = w.words[w.length - 1] == '$';
    w.length -= (size_t)w.is_end;
    return w;
}

const char *lumat_find_said(const char *message, lumat_lua_message kind)
{
    wanted w = row(kind);
    for (const char *p = message; *p && !(w.is_begin && p > message); p++)
        if (strncmp(p, w.words, w.length) == 0 && !(w.is_end && p[w.length]))
            return p;
    return NULL;
}

const char *lumat_behind_said(const char *message, lumat_lua_message kind)
{
    const char *p = lumat_find_said(message, kind);
    return p ? p + row(kind).length : NULL;
}

int lumat_is_near(const char *message, const char *token)
{
    static const char quoted[] = " '";
    size_t n = strlen(token);
    const char *p = message;
    while ((p = lumat_behind_said(p, LUMAT_LUA_NEAR)))
        if (strncmp(p, quoted, 2) == 0 && strncmp(p + 2, token, n) == 0 &&
            p[2 + n] == '\'')
            return 1;
    return 0;
}

const char *lumat_skip_place(const char *message, int *line)
{
    static const char chunk[] = LUMAT_CHUNK ":";
    const char *number = message + sizeof chunk - 1;
    *line = 0;
    if (strncmp(message, chunk, sizeof chunk - 1) != 0)
        return message;
    size_t digits = strspn(number, "0123456789");
    if (digits == 0 || strncmp(number + digits, ": ", 2) != 0)
        return message;
    *line = atoi(number);
    return number + digits + 2;
}
