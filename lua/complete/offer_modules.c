/* The modules that require would find: loaded ones, those with a loader, and
 * files on package.path and package.cpath. */
#include "offer_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void offer_keys(lumat_gather *g, const char *field)
{
    lua_State *L = g->L;
    int top = lua_gettop(L);
    lua_getfield(L, LUA_REGISTRYINDEX, field);
    for (lua_pushnil(L); lua_istable(L, top + 1) && lua_next(L, top + 1);
         lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            lumat_gather_copy(g, lua_tostring(L, -2), lua_rawlen(L, -2), NULL);
    lua_settop(L, top);
}

enum { LONGEST = 512 };

/* A template such as "/usr/share/lua/?/init.lua", cut at its mark, with what
 * was typed up to its last dot in between. */
typedef struct template
{
    char folder[LONGEST];
    const char *rest; /* ".lua", "/init.lua" */
    size_t rest_length;
}
template;

static int is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The entry as a module's name without the typed part before its last dot;
 * its length, or 0 when it is none. */
static size_t module_length(const template *p, const char *entry)
{
    char path[2 * LONGEST];
    size_t n = strlen(entry), rest = p->rest_length;
    struct stat s;
    if (p->rest[0] != '/') {
        int ends = n > rest && memcmp(entry + n - rest, p->rest, rest) == 0;
        return ends && !memchr(entry, '.', n - rest) ? n - rest : 0;
    }
    if (strchr(entry, '.'))
        return 0;
    snprintf(path, sizeof path, "%s%s%.*s", p->folder, entry,
             (int)p->rest_length, p->rest);
    return stat(path, &s) == 0 ? n : 0;
}

static void offer_entry(lumat_gather *g, const template *p, size_t typed,
                        const char *entry)
{
    char path[2 * LONGEST];
    size_t n = module_length(p, entry);
    lua_State *L = g->L;
    snprintf(path, sizeof path, "%s%s", p->folder, entry);
    int is_prefix =
        n == 0 && p->rest[0] != '/' && !strchr(entry, '.') && is_folder(path);
    if (n == 0 && !is_prefix)
        return;
    lua_pushlstring(L, g->prefix, typed);
    lua_pushlstring(L, entry, n > 0 ? n : strlen(entry));
    lua_pushstring(L, is_prefix ? "." : "");
    lua_concat(L, 3);
    lumat_gather_copy(g, lua_tostring(L, -1), lua_rawlen(L, -1), NULL);
    lua_pop(L, 1);
}

/* Closes the folder on top. */
static int close_folder(lua_State *L)
{
    DIR **folder = lua_touserdata(L, -1);
    if (*folder)
        closedir(*folder);
    *folder = NULL;
    return 0;
}

/* The collector closes it if an error comes between. */
static DIR **push_folder(lua_State *L, const char *path)
{
    DIR **folder = lua_newuserdatauv(L, sizeof *folder, 0);
    *folder = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_folder);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *folder = opendir(path);
    return folder;
}

/* Pushes a table of the names in a folder, and returns how many: none of a
 * folder that cannot be read to its end, as what is offered has to be all. */
static int push_entries(lua_State *L, const char *path)
{
    int count = 0;
    lua_newtable(L);
    DIR **folder = push_folder(L, path);
    struct dirent *entry = NULL;
    do {
        errno = 0;
        entry = *folder ? readdir(*folder) : NULL;
        if (entry) {
            lua_pushstring(L, entry->d_name);
            lua_rawseti(L, -3, ++count);
        }
    } while (entry);
    count = errno ? 0 : count;
    close_folder(L);
    lua_pop(L, 1);
    return count;
}

static void read_template(lumat_gather *g, const char *text, size_t length,
                          size_t typed)
{
    const char *mark = memchr(text, '?', length);
    if (!mark || (size_t)(mark - text) + typed >= LONGEST)
        return;
    template p = {.rest = mark + 1,
                  .rest_length = length - (size_t)(mark + 1 - text)};
    snprintf(p.folder, sizeof p.folder, "%.*s%.*s", (int)(mark - text), text,
             (int)typed, g->prefix);
    for (char *c = p.folder + (mark - text); *c; c++)
        *c = *c == '.' ? '/' : *c;
    lua_State *L = g->L;
    int entries = push_entries(L, *p.folder ? p.folder : ".");
    for (int i = 1; i <= entries; i++) {
        lua_rawgeti(L, -1, i);
        offer_entry(g, &p, typed, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Reads the templates of a field of the table `package`, which is on top. */
static void read_path(lumat_gather *g, const char *field, size_t typed)
{
    lua_State *L = g->L;
    lua_pushstring(L, field);
    lua_rawget(L, -2);
    if (lua_type(L, -1) == LUA_TSTRING) {
        const char *path = lua_tostring(L, -1);
        for (size_t n; *path; path += n + (path[n] == ';')) {
            n = strcspn(path, ";");
            read_template(g, path, n, typed);
        }
    }
    lua_pop(L, 1);
}

void lumat_gather_modules(lumat_gather *g)
{
    lua_State *L = g->L;
    int top = lua_gettop(L);
    size_t typed = g->length;
    while (typed > 0 && g->prefix[typed - 1] != '.')
        typed--;
    offer_keys(g, LUA_LOADED_TABLE);
    offer_keys(g, LUA_PRELOAD_TABLE);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushliteral(L, "package");
    if (lua_istable(L, -2) && lua_rawget(L, -2) == LUA_TTABLE) {
        read_path(g, "path", typed);
        read_path(g, "cpath", typed);
    }
    lua_settop(L, top);
}
