/* Named fields of the table on top of the stack. */
#ifndef LUMAT_RECORDS_H
#define LUMAT_RECORDS_H

#include "lua.h"
#include <stdint.h>

void lumat_set_number(lua_State *L, const char *key, double value);
void lumat_set_truth(lua_State *L, const char *key, int is_so);
/* Counts and bits, as Lua's integers. */
void lumat_set_count(lua_State *L, const char *key, uint64_t value);

#endif
