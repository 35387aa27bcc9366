/* Commands that show what there is. */
#include "command_list.h"
#include "terminal.h"

#include <string.h>

/* Takes the first word off the text, and returns how long it is. */
static size_t next_word(const char **text, const char **word)
{
    size_t length;
    *text += strspn(*text, " \t");
    *word = *text;
    length = strcspn(*text, " \t");
    *text += length;
    return length;
}

/* :who [pattern] [-s], in any order. */
void repl_run_who(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    const char *word, *pattern = NULL;
    size_t length;
    int base = lua_gettop(L), by_size = 0;
    while ((length = next_word(&rest, &word)) > 0) {
        if (length == 2 && strncmp(word, "-s", 2) == 0)
            by_size = 1;
        else if (pattern != NULL || word[0] == '-')
            break;
        else
            pattern = lua_pushlstring(L, word, length);
    }
    if (length > 0)
        repl_complain(":who takes a name or a pattern such as tmp*, and -s to "
                      "put the largest first");
    else {
        lumat_push_who(L, pattern, by_size);
        repl_print_top(L);
    }
    lua_settop(L, base);
}
