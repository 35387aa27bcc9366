/* The commands and options that the terminal told of. */
#include "command_names.h"

#include <string.h>

static const lumat_row *commands, *options;

void lumat_describe(const lumat_row *command_list, const lumat_row *option_list)
{
    commands = command_list;
    options = option_list;
}

const lumat_row *lumat_command_rows(void)
{
    return commands;
}

const lumat_row *lumat_option_rows(void)
{
    return options;
}

/* Headings have no form. */
int lumat_is_command(const char *name, size_t length)
{
    for (const lumat_row *row = commands; row && row->name; row++)
        if (row->form && strlen(row->name) == length &&
            memcmp(row->name, name, length) == 0)
            return 1;
    return 0;
}

/* The manual knows those words; help.c sets the function that asks it. */
const char *lumat_push_instead(lua_State *L, const char *word)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.instead");
    lua_pushstring(L, word);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1))
        return lua_tostring(L, -1);
    lua_pop(L, 1);
    lua_pushnil(L);
    return NULL;
}
