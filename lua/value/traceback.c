/* The calls that are under way, without the library's own. */
#include "value.h"

#include "lauxlib.h"
#include <string.h>

enum { TOP = 12, BOTTOM = 12 }; /* levels that are looked at */

static int is_library(const char *source)
{
    if (*source++ != '=')
        return 0;
    for (const lumat_std *s = lumat_std_files; s->name; s++)
        if (strcmp(source, s->name) == 0)
            return 1;
    return 0;
}

int lumat_is_users(const lua_Debug *ar)
{
    return ar->currentline > 0 && !is_library(ar->source);
}

/* How many levels there are. */
static int count_levels(lua_State *L)
{
    lua_Debug ar;
    int low = 0, high = 1; /* low is there */
    while (lua_getstack(L, high, &ar)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (lua_getstack(L, middle, &ar))
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void push_frame(lua_State *L, const lua_Debug *ar)
{
    const char *tail = ar->istailcall ? "\n\t(...tail calls...)" : "";
    if (*ar->what == 'm')
        lua_pushliteral(L, "main chunk");
    else if (strcmp(ar->namewhat, "global") == 0)
        lua_pushfstring(L, "function '%s'", ar->name);
    else if (*ar->namewhat)
        lua_pushfstring(L, "%s '%s'", ar->namewhat, ar->name);
    else
        lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
    lua_pushfstring(L, "\n\t%s:%d: in %s%s", ar->short_src, ar->currentline,
                    lua_tostring(L, -1), tail);
    lua_remove(L, -2);
}

/* "[library]: in function 'sort'", by the name it was called by. */
static void push_library(lua_State *L, const lua_Debug *ar)
{
    if (ar->name)
        lua_pushfstring(L, "\n\t[library]: in function '%s'", ar->name);
    else
        lua_pushliteral(L, "\n\t[library]");
}

void lumat_push_traceback(lua_State *L)
{
    lua_Debug ar, library = {0};
    int levels = count_levels(L), users = 0, is_between = 0;
    lua_pushliteral(L, "stack traceback:");
    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        if (level == TOP && levels > TOP + BOTTOM) {
            level = levels - BOTTOM;
            is_between = 0;
            lua_pushfstring(L, "\n\t...\t(skipping %d levels)", level - TOP);
            lua_concat(L, 2);
            lua_getstack(L, level, &ar);
        }
        lua_getinfo(L, "Slnt", &ar);
        if (!lumat_is_users(&ar)) {
            library = ar;
            is_between = users > 0;
            continue;
        }
        if (is_between) {
            push_library(L, &library);
            lua_concat(L, 2);
        }
        push_frame(L, &ar);
        lua_concat(L, 2);
        is_between = 0;
        users++;
    }
    if (users > 1)
        return;
    lua_pop(L, 1);
    lua_pushnil(L);
}
