/* What kind of entry was typed. */
#include "entry_kind.h"

#include "lumat.h"

#include <string.h>

const char *repl_skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* A name, such as A.T or :who, and a question mark right behind it. */
static int asks_for_name(const char *start)
{
    size_t length = strcspn(start, "?");
    const char *behind = start + length + strspn(start + length, "?");
    return length > 0 && start[length] == '?' &&
           strspn(start, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789_.:") == length &&
           strchr("0123456789.", start[0]) == NULL &&
           behind[strspn(behind, " \t\r\n")] == '\0';
}

/* "::" opens a Lua label. */
repl_entry_kind repl_entry_kind_of(const char *text, const char **rest)
{
    const char *start = repl_skip_blanks(text);
    repl_entry_kind kind = REPL_LUA;
    size_t mark = 0;
    if (start[strspn(start, " \t\r\n")] == '\0')
        kind = REPL_BLANK;
    else if (asks_for_name(start))
        kind = REPL_HELP;
    else if (start[0] == '!' || (start[0] == ':' && start[1] == '!'))
        kind = REPL_SHELL, mark = start[0] == '!' ? 1 : 2;
    else if (start[0] == ':' && start[1] != ':')
        kind = REPL_COMMAND, mark = 1;
    else if (start[0] == '?' && start[1] == '?')
        kind = REPL_SEARCH, mark = 2;
    else if (start[0] == '?')
        kind = REPL_HELP, mark = 1;
    *rest = repl_skip_blanks(start + mark);
    return kind;
}
