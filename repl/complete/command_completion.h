/* What may stand where the cursor is, by what stands before it. */
#ifndef COMMAND_COMPLETION_H
#define COMMAND_COMPLETION_H

#include "lumat.h"

#define REPL_FOLDERS "/" /* kinds of files: no file's, but folders */

/* As lumat_complete, and commands, their arguments, and help's topics. */
lumat_completion repl_complete(lua_State *L, const char *line, size_t point,
                               lumat_name_fn *each, void *data);

#endif
