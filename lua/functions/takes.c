/* Reading a row's `takes` and `gives`. */
#include "function.h"

#include <ctype.h>
#include <string.h>

#define ELLIPSIS "…"

int lumat_is_piece(lumat_piece p, const char *word)
{
    return strlen(word) == p.length && memcmp(word, p.start, p.length) == 0;
}

/* --- arguments ------------------------------------------------------------ */

static lumat_piece read_word(const char **p)
{
    lumat_piece word = { *p += strspn(*p, " "), 0};
    while (isalnum((unsigned char)**p) || **p == '_')
        ++*p;
    word.length = (size_t)(*p - word.start);
    return word;
}

/* Words and strings with | between them. */
static lumat_piece read_kind(const char **p)
{
    lumat_piece kind = { *p += strspn(*p, " "), 0};
    while (**p && !strchr(" ,]{", **p)) {
        const char *end = **p == '"' ? strchr(*p + 1, '"') : NULL;
        *p = end ? end + 1 : *p + 1;
    }
    kind.length = (size_t)(*p - kind.start);
    return kind;
}

static int is_or(const char *p)
{
    return strncmp(p, "or ", 3) == 0;
}

static int read_options(lumat_argument *a, const char *p, int is_needed)
{
    const char *end = strchr(p, '}');
    a->is = LUMAT_ARGUMENT_OPTIONS;
    a->is_needed = is_needed;
    a->name = (lumat_piece){p + 1, (size_t)(end - p - 1)};
    a->rest = end + 1;
    return 1;
}

static int read_named(lumat_argument *a, const char *p)
{
    a->is = LUMAT_ARGUMENT;
    a->name = read_word(&p);
    a->kind = a->fit = a->partner = (lumat_piece){p, 0};
    if (*p == ':')
        p++, a->kind = read_kind(&p);
    p += strspn(p, " ");
    if (islower((unsigned char)*p) && !is_or(p)) {
        a->fit = read_word(&p);
        a->partner = read_word(&p);
    }
    a->rest = p;
    return a->name.length > 0;
}

int lumat_next_argument(lumat_argument *a)
{
    const char *p = a->rest;
    int comma = 0;
    a->place += a->is != LUMAT_ARGUMENT_OPTIONS || a->place == 0;
    for (; *p; p++) {
        if (*p == '[' || *p == ']')
            a->open += *p == '[' ? 1 : -1;
        else if (is_or(p) && a->open == 0) {
            a->form++;
            a->place = 1;
            p += 2;
        } else if (*p != ' ' && *p != ',')
            break;
        comma |= *p == ',';
    }
    a->depth = a->open;
    a->is_needed = 0;
    if (*p == '{')
        return read_options(a, p, comma && a->open == 0);
    if (strncmp(p, ELLIPSIS, strlen(ELLIPSIS)) == 0) {
        a->is = LUMAT_ARGUMENT_MORE;
        a->rest = p + strlen(ELLIPSIS);
        return 1;
    }
    return read_named(a, p);
}

/* Up to `sign`, which is not part of it, outside of strings. */
static int next_part(lumat_piece *rest, lumat_piece *part, char sign)
{
    const char *end = rest->start + rest->length, *p = rest->start;
    int quoted = 0;
    if (rest->length == 0)
        return 0;
    for (; p < end && (*p != sign || quoted); p++)
        quoted ^= *p == '"';
    *part = (lumat_piece){rest->start, (size_t)(p - rest->start)};
    p += p < end;
    p += strspn(p, " ");
    *rest = (lumat_piece){p, p < end ? (size_t)(end - p) : 0};
    return 1;
}

int lumat_next_kind(lumat_piece *rest, lumat_piece *kind)
{
    return next_part(rest, kind, '|');
}

int lumat_next_name(lumat_piece *rest, lumat_piece *name)
{
    return next_part(rest, name, ',');
}

/* --- options -------------------------------------------------------------- */

/* Those that mean the same wherever they are taken. */
static const lumat_option common[] = {
    {"dtype", "dtype", "what default_dtype says",
     "element type: \"f32\", \"f64\", \"c64\", \"c128\" or \"bool\""},
    {"device", "device", "the default device",
     "where it lives: \"cpu\", \"cuda\" or \"cuda:N\""},
    {"seed", "integer", NULL,
     "a whole number; the same one gives the same numbers on every device"},
    {"out", "matrix", NULL,
     "a matrix of the result's shape and type to write into"},
    {"kernel", "kernel", "the fastest that is accurate",
     "one of kernels(A, B) by name"},
    {"width", "number", "what the screen has", "characters across"},
    {"height", "number", "what the screen has", "lines of the picture, about"},
    {"axis", "axis", NULL, "1: down each column, 2: along each row"},
    {"nan", "\"skip\"|\"keep\"", "\"keep\"",
     "\"skip\": NaN is left out; else what has NaN gives NaN"},
    {"keepdims", "boolean", "true",
     "false: the one line that comes along an axis of a matrix is a vector, in "
     "place of a 1xn or mx1 matrix, and of a vector a number"},
    {"descending", "boolean", NULL, "true: the largest first"},
    {"low", "number", "the least", "the lower end of the range"},
    {"high", "number", "the greatest", "the upper end of the range"},
    {"mean", "number", "0", "the mean"},
    {"std", "number", "1", "the standard deviation"},
    {"bins", "count", "as many as make round edges", "how many bars"},
    {"file", "picture", NULL,
     "where it is drawn instead: a name that ends in .svg, .png or .pdf"},
    {"title", "string", NULL, "above the chart"},
    {"xlabel", "string", NULL, "what runs along x"},
    {"ylabel", "string", NULL, "what runs along y"},
    {"xlim", "table", "as far as the series", "{low, high}, the ends of x"},
    {"ylim", "table", "as far as the series", "{low, high}, the ends of y"},
    {"logx", "boolean", "false", "true: x is logarithmic"},
    {"logy", "boolean", "false", "true: y is logarithmic"},
    {"xdates", "boolean", "false",
     "true: x is seconds since 1970 (UTC), shown as dates"},
    {"legend", "boolean|table", "true of several series",
     "true, false, or a list with a name for each series"},
    {"by", "vector|table", NULL,
     "a key for each element of y, a vector, a list of texts or a column of a "
     "frame: each different one is a series"},
    {"before", "size", "k // 2",
     "how many of them come before the element; k - 1: it is the last"},
    {"ends", "\"shrink\"|\"fill\"|\"discard\"", "\"shrink\"",
     "where there are not k: \"shrink\" takes those that there are, \"fill\" "
     "gives NaN, \"discard\" no result"},
    {"method",
     "\"linear\"|\"inverted_cdf\"|\"averaged_inverted_cdf\"|"
     "\"closest_observation\"|\"interpolated_inverted_cdf\"|\"hazen\"|"
     "\"weibull\"|\"median_unbiased\"|\"normal_unbiased\"|\"lower\"|"
     "\"higher\"|\"midpoint\"|\"nearest\"",
     "\"linear\"", "what lies between elements, by the names that NumPy has"},
    {"names", "table", NULL, "a list of what stands at 1, 2, 3 … of x"},
    {"size", "table", "{680, 420}", "{width, height} of a file, in pixels"},
    {"dark", "boolean", "false", "true: a file's ground is dark"},
    {"delimiter", "string", "\",\", or a tab by the file's name",
     "the character between cells"},
    {NULL, NULL, NULL, NULL}};

static const lumat_option *find_in(const lumat_option *list, lumat_piece name)
{
    for (; list && list->name; list++)
        if (lumat_is_piece(name, list->name))
            return list;
    return NULL;
}

int lumat_is_common(const lumat_option *option)
{
    return option >= common && option < common + sizeof common / sizeof *common;
}

static const lumat_option *meaning_of(const lumat_function *f, lumat_piece name)
{
    const lumat_option *found = find_in(f->options, name);
    if (!found)
        found = find_in(f->more, name);
    return found ? found : find_in(common, name);
}

/* Forms repeat their options: only those before `at` count as told. */
static int is_told_before(const lumat_function *f, lumat_piece name)
{
    lumat_argument a = {.rest = f->takes};
    lumat_piece one;
    while (lumat_next_argument(&a)) {
        lumat_piece names = a.name;
        while (a.is == LUMAT_ARGUMENT_OPTIONS &&
               lumat_next_name(&names, &one)) {
            if (one.start == name.start)
                return 0;
            if (one.length == name.length &&
                memcmp(one.start, name.start, name.length) == 0)
                return 1;
        }
    }
    return 0;
}

void lumat_each_option(const lumat_function *f, lumat_option_fn *each,
                       void *data)
{
    lumat_argument a = {.rest = f->takes};
    lumat_piece name;
    while (lumat_next_argument(&a)) {
        lumat_piece names = a.name;
        while (a.is == LUMAT_ARGUMENT_OPTIONS &&
               lumat_next_name(&names, &name)) {
            const lumat_option *option = meaning_of(f, name);
            if (option && !is_told_before(f, name))
                each(data, option);
        }
    }
}

typedef struct sought {
    const char *name;
    size_t length;
    const lumat_option *found;
} sought;

static void compare(void *data, const lumat_option *option)
{
    sought *s = data;
    if (lumat_is_piece((lumat_piece){s->name, s->length}, option->name))
        s->found = option;
}

const lumat_option *lumat_find_option(const lumat_function *f, const char *name,
                                      size_t length)
{
    sought s = {name, length, NULL};
    lumat_each_option(f, compare, &s);
    return s.found;
}

/* --- results ---------------------------------------------------------------
 */

int lumat_place_of(const lumat_function *f, lumat_piece wanted)
{
    lumat_argument a = {.rest = f->takes};
    lumat_piece name;
    while (lumat_next_argument(&a)) {
        lumat_piece names = a.name;
        while (lumat_next_name(&names, &name))
            if (name.length == wanted.length &&
                memcmp(name.start, wanted.start, name.length) == 0)
                return a.place;
    }
    return 1;
}

lumat_piece lumat_result_kind(const lumat_function *f, int arguments)
{
    const char *p = f->gives;
    lumat_piece kind = read_kind(&p);
    const char *with = strstr(p, " or ");
    if (!with)
        return kind;
    with += strlen(" or ");
    lumat_piece other = read_kind(&with);
    if (strncmp(with, " with ", 6) != 0)
        return other.length == kind.length &&
                       memcmp(other.start, kind.start, kind.length) == 0
                   ? kind
                   : (lumat_piece){"value", 5};
    with += 6;
    return arguments >= lumat_place_of(f, read_word(&with)) ? other : kind;
}

int lumat_most_results(const lumat_function *f)
{
    int most = 0, count = 1;
    if (strcmp(f->gives, "nothing") == 0)
        return 0;
    for (const char *p = f->gives; *p; p++) {
        count = strncmp(p, " or ", 4) == 0 ? 1 : count + (*p == ',');
        most = count > most ? count : most;
    }
    return strstr(f->gives, ELLIPSIS) ? 8 : most;
}

int lumat_count_results(const lumat_function *f, lumat_piece *with)
{
    const char *other = strstr(f->gives, " or "), *p;
    int count = 1;
    if (strcmp(f->gives, "nothing") == 0)
        return 0;
    for (p = f->gives; *p && p != other; p++)
        count += *p == ',';
    p = other ? strstr(other, " with ") : NULL;
    if (p)
        p += strlen(" with ");
    *with = p ? read_word(&p) : (lumat_piece){"", 0};
    return count;
}

/* --- how it is called ------------------------------------------------------
 */

/* By their names, unless these are too many to be read in passing. */
static void add_options(luaL_Buffer *b, lumat_piece names)
{
    enum { MOST = 6 };
    lumat_piece name, rest = names;
    int count = 0;
    while (lumat_next_name(&rest, &name))
        count++;
    if (count > MOST) {
        luaL_addstring(b, "options");
        return;
    }
    for (int i = 0; lumat_next_name(&names, &name); i++) {
        luaL_addstring(b, i > 0 ? "=, " : "{");
        luaL_addlstring(b, name.start, name.length);
    }
    luaL_addstring(b, "=}");
}

/* The options of an earlier form are not told again. */
static int is_repeated(const lumat_function *f, const lumat_argument *options)
{
    lumat_argument a = {.rest = f->takes};
    while (lumat_next_argument(&a) && a.form < options->form)
        if (a.is == LUMAT_ARGUMENT_OPTIONS &&
            a.name.length == options->name.length &&
            memcmp(a.name.start, options->name.start, a.name.length) == 0)
            return 1;
    return 0;
}

static void add_argument(luaL_Buffer *b, const lumat_argument *a)
{
    const char *comma = a->place > 1 ? ", " : "";
    if (a->is == LUMAT_ARGUMENT_OPTIONS && !a->is_needed) {
        luaL_addstring(b, a->place > 1 ? " [, " : "[");
        add_options(b, a->name);
        luaL_addchar(b, ']');
        return;
    }
    luaL_addstring(b, comma);
    if (a->is == LUMAT_ARGUMENT_OPTIONS)
        add_options(b, a->name);
    else if (a->is == LUMAT_ARGUMENT_MORE)
        luaL_addstring(b, ELLIPSIS);
    else
        luaL_addlstring(b, a->name.start, a->name.length);
}

static int count_forms(const lumat_function *f)
{
    lumat_argument a = {.rest = f->takes};
    int forms = 1;
    while (lumat_next_argument(&a))
        forms = a.form + 1;
    return forms;
}

/* Brackets and " or " between what is read and what was. */
static void add_between(luaL_Buffer *b, const lumat_function *f, int forms,
                        const lumat_argument *last, const lumat_argument *a)
{
    int depth = last->depth;
    if (a->form == last->form) {
        for (; depth > a->depth; depth--)
            luaL_addchar(b, ']');
        if (a->depth > depth)
            luaL_addstring(b, a->place > 1 ? " [" : "[");
        return;
    }
    for (; depth > 0; depth--)
        luaL_addchar(b, ']');
    luaL_addchar(b, ')');
    luaL_addstring(b, a->form + 1 < forms ? ", " : " or ");
    luaL_addstring(b, f->name);
    luaL_addchar(b, '(');
}

const char *lumat_push_usage(lua_State *L, const lumat_function *f)
{
    lumat_argument a = {.rest = f->takes}, last = a;
    int forms = count_forms(f);
    luaL_Buffer b;
    if (f->usage)
        return lua_pushstring(L, f->usage);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, f->name);
    luaL_addchar(&b, '(');
    while (lumat_next_argument(&a)) {
        if (a.is == LUMAT_ARGUMENT_OPTIONS && !a.is_needed &&
            is_repeated(f, &a))
            continue;
        add_between(&b, f, forms, &last, &a);
        add_argument(&b, &a);
        last = a;
    }
    for (; last.depth > 0; last.depth--)
        luaL_addchar(&b, ']');
    luaL_addchar(&b, ')');
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}
