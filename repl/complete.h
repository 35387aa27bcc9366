/* What may stand where the cursor is, by what stands before it. */
#ifndef COMPLETE_H
#define COMPLETE_H

#include "lumat.h"

/* Whether a file's name belongs at point, outside of quotes. */
int repl_completes_files(const char *line, size_t point);

/* As lumat_complete, and commands, their arguments, and help's topics. */
size_t repl_complete(lua_State *L, const char *line, size_t point,
                     lumat_name_fn *each, void *data);

#endif
