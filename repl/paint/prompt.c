/* What stands in front of the rows of an entry, and finding it in a pasted
 * screen. */
#include "paint.h"

#include <stdio.h>
#include <string.h>

#define DOTS "…"

/* The character … takes three bytes and one column. */
void repl_continuation_prompt(const char *first, const char *open, int ascii,
                              char *prompt, size_t room)
{
    int named = open[0] != '\0';
    const char *sign = ascii ? "> " : named ? " " DOTS "> " : DOTS "> ";
    int columns = (int)strlen(open) + (int)strlen(sign) - (ascii ? 0 : 2);
    int blanks = (int)strlen(first) - columns;
    snprintf(prompt, room, "%*s%.40s%s", blanks > 0 ? blanks : 0, "", open,
             sign);
}

/* Behind the text if the line has it here, else NULL. */
static const char *skip(const char *line, const char *text)
{
    size_t length = strlen(text);
    return strncmp(line, text, length) == 0 ? line + length : NULL;
}

/* A screen's lines lose the blanks at their ends. */
static const char *skip_sign(const char *line)
{
    const char *end = skip(line, "> ");
    if (end == NULL && (end = skip(line, ">")) != NULL &&
        strchr("\r\n", *end) == NULL)
        end = NULL;
    return end;
}

/* "lumat> ", "lumat[cpu]> " */
static const char *skip_first(const char *line)
{
    const char *end = skip(line, "lumat");
    if (end != NULL && *end == '[') {
        end += strcspn(end, "]\r\n");
        end += *end == ']';
    }
    return end != NULL ? skip_sign(end) : NULL;
}

/* "for …> ", "  …> ", and "for> " where there is no … */
static const char *skip_other(const char *line)
{
    static const char *const names[] = {"for", "if", "while", "function",
                                        "do",  "[[", "--[[",  "repeat",
                                        "(",   "[",  "{",     ""};
    const char *end = NULL, *dots;
    line += strspn(line, " ");
    for (size_t i = 0; i < sizeof names / sizeof *names && end == NULL; i++) {
        end = skip(line, names[i]);
        if (end == NULL)
            continue;
        dots = skip(end + (*end == ' '), DOTS);
        end = skip_sign(dots != NULL ? dots : end);
    }
    return end;
}

size_t repl_prompt_in(const char *line, int *first)
{
    const char *end = skip_first(line);
    *first = end != NULL;
    if (end == NULL)
        end = skip_other(line);
    return end != NULL ? (size_t)(end - line) : 0;
}
