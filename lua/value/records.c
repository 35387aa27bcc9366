/* Named fields of the table on top of the stack. */
#include "records.h"

void lumat_set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

void lumat_set_truth(lua_State *L, const char *key, int is_so)
{
    lua_pushboolean(L, is_so);
    lua_setfield(L, -2, key);
}

void lumat_set_count(lua_State *L, const char *key, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}
