/* :set, by which settings are looked at and changed. */
#include "command_list.h"

#include <string.h>

/* "digits 6", "digits=6" and "digits = 6" are one. */
void repl_run_set(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    size_t length = strcspn(rest, " \t=");
    const char *name = lua_pushlstring(L, rest, length);
    const char *value = rest + length + strspn(rest + length, " \t=");
    int ok = lumat_push_setting(L, name, value);
    lua_remove(L, -2);
    repl_print_or_complain(L, ok);
}
