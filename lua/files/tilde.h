/* The user's folder in the names of files. */
#ifndef LUMAT_TILDE_H
#define LUMAT_TILDE_H

#include "lua.h"

/* Pushes the path of a file that a user named: "~/name" is in his home. */
const char *lumat_push_path(lua_State *L, const char *path);

#endif
