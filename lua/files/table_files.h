/* What reading and writing tables as text share. */
#ifndef LUMAT_TABLE_FILES_H
#define LUMAT_TABLE_FILES_H

#include "csv.h"
#include "formats.h"

#define LUMAT_CSV_DELIMITER \
    "one character that no number has, such as \",\", \";\", \"\\t\" or \" \""

/* Could it stand between cells, or before the decimals of a number? */
int lumat_csv_is_delimiter(char c);
int lumat_csv_is_decimal(char c);
/* The one character under key of the options at arg; false is 0 where that
 * fits. Raises "key: needs …" of any other that does not fit. */
char lumat_csv_option_char(lua_State *L, int arg, const char *key,
                           int (*fits)(char c), const char *needs,
                           char otherwise);

/* Makes the readers of tables known to Lua, which closes them. */
void lumat_open_csv(lua_State *L);

#endif
