/* The line of Lua that issued an operation. */
#include "parse.h"
#include "profile.h"
#include "registry.h"
#include "running.h"
#include "traceback.h"

#include <stdio.h>
#include <string.h>

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

void lumat_find_line(char line[LUMAT_LINE])
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
