/* Feeds any bytes to the reader of JSON. Holds: what it takes and can write, it
 * reads back as the same; what it refuses leaves nothing behind. */
#include "experiment_parts.h"
#include "lualib.h"

#include <stdint.h>
#include <stdlib.h>

static void require(int truth)
{
    if (!truth)
        abort();
}

/* Replaces the value on top by its text, if it has one. */
static int write_value(lua_State *L)
{
    lua_getglobal(L, "encode");
    lua_insert(L, -2);
    return lua_pcall(L, 1, 1, 0) == LUA_OK;
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length;
    lua_State *L = luaL_newstate();
    require(L != NULL);
    lua_pushglobaltable(L);
    lumat_add_json(L);
    lua_settop(L, 0);
    char *text = malloc(size ? size : 1); /* its end is found if passed */
    require(text != NULL);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)data[i];
    size_t at = size + 1;
    const char *wrong = lumat_push_json(L, text, size, &at);
    free(text);
    require(at <= size);
    require(lua_gettop(L) == (wrong ? 0 : 1));
    if (!wrong && write_value(L)) {
        const char *first = lua_tolstring(L, 1, &length);
        require(lumat_push_json(L, first, length, NULL) == NULL);
        require(write_value(L));
        require(lua_rawequal(L, 1, 2));
    }
    lua_close(L);
    return 0;
}
