/* The options of a function, read out of its help: "{kernel=, bound=}" in
 * the usage, and "Options: header (true, false), delimiter." in the text. */
#include "call_at_cursor.h"

#include <ctype.h>
#include <string.h>

static size_t name_length(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

/* Behind the closing bracket of the one at p, or at the end. */
static const char *skip_brackets(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        depth += (*p == '(' || *p == '{') - (*p == ')' || *p == '}');
        if (depth == 0)
            return p + 1;
    }
    return p;
}

/* Groups without a = are tables of data: mat{{1, 2}, {3, 4}}. */
static void read_usage(const char *usage, lumat_option_fn *each, void *data)
{
    for (const char *p = usage; (p = strchr(p, '{')); p = skip_brackets(p)) {
        const char *name = p + 1, *end = skip_brackets(p) - 1;
        while (name < end) {
            size_t n = name_length(name);
            if (n == 0 || name[n] != '=')
                break;
            lumat_option option = {name, name + n + 1, n, 0};
            option.note_length = strcspn(option.note, ",}");
            each(data, &option);
            name = option.note + option.note_length;
            name += strspn(name, ", ");
        }
    }
}

/* Names with a comma between them and a note in brackets behind some. */
static void read_list(const char *p, lumat_option_fn *each, void *data)
{
    size_t n;
    while ((n = name_length(p)) > 0) {
        lumat_option option = {p, p + n, n, 0};
        p += n;
        if (p[0] == ' ' && p[1] == '(') {
            option.note = p + 2;
            p = skip_brackets(p + 1);
            option.note_length = (size_t)(p - option.note);
        }
        each(data, &option);
        if (*p != ',')
            return;
        p += strspn(p, ", ");
    }
}

/* "Options: …" or "Options for tables: …" */
static void read_text(const char *text, lumat_option_fn *each, void *data)
{
    const char *start = strstr(text, "Options"), *colon;
    if (!start || !(colon = strpbrk(start, ":.")) || *colon != ':')
        return;
    read_list(colon + 1 + strspn(colon + 1, " "), each, data);
}

void lumat_each_option(lua_State *L, const char *function,
                       lumat_option_fn *each, void *data)
{
    read_usage(lumat_push_help_field(L, function, "usage"), each, data);
    read_text(lumat_push_help_field(L, function, "help"), each, data);
    lua_pop(L, 2);
}
