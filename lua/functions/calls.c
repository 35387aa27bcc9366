/* Calls of the library's functions: counted, checked, then done. */
#include "function.h"
#include "value.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

/* What a call is held against, in front of the function itself: the closure's
 * first upvalue. */
typedef struct known_option {
    const char *key; /* as Lua has it: equal strings are at one place */
    lumat_kind kind;
} known_option;

typedef struct known_argument {
    lumat_piece name;
    lumat_kind kind; /* nil is of it where the argument may be left out */
} known_argument;

enum { QUICK = 8 };

/* What the Lua types of a call's arguments tell: bits of those that values of
 * their kinds may have, and how many there are to be looked at so. */
typedef struct quick_form {
    int least, most;
    int has_options; /* and may it end in options, which are not counted? */
    unsigned short types[QUICK];
} quick_form;

/* A form of the call. Its arguments stand in `arguments` from first on. */
typedef struct known_form {
    quick_form quick;
    int first, count;
    int needed;      /* so many of them must be there */
    int has_more;    /* any number of the last one */
    int has_options; /* behind them, or in place of those left out */
    int needs_options;
} known_form;

typedef struct checked {
    const lumat_function *row;
    quick_form quick;  /* of the first form, once it is known */
    known_form *forms; /* these from the first call on */
    known_argument *arguments;
    int form_count;
    known_option *options; /* and these from the first that has any */
    int option_count;
    int is_lua;
    int least, most; /* arguments before options; INT_MAX: any number */
    int from, to;    /* where the options may stand; 0: nowhere */
    int unlooked;    /* as many as there can be without a look at them */
    int is_device;   /* one more is a device's text, as device() gives it */
    unsigned data;   /* bits of the places where a table may be data */
} checked;

static lumat_piece text_of(const char *text)
{
    return (lumat_piece){text, strlen(text)};
}

/* --- what is held against ---------------------------------------------------
 */

static int is_in(lumat_piece kinds, const char *kind)
{
    lumat_piece one;
    while (lumat_next_kind(&kinds, &one))
        if (lumat_is_piece(one, kind))
            return 1;
    return 0;
}

static void measure(const lumat_function *f, checked *c)
{
    lumat_argument a = {.rest = f->takes};
    int form = -1, needed = 0;
    *c = (checked){.row = f, .least = INT_MAX, .quick = {.least = INT_MAX}};
    while (lumat_next_argument(&a)) {
        if (a.form != form)
            c->least = needed < c->least && form >= 0 ? needed : c->least;
        if (a.form != form)
            needed = 0, form = a.form;
        if (a.is == LUMAT_ARGUMENT_OPTIONS) {
            int first = needed + 1;
            c->from = c->from == 0 || first < c->from ? first : c->from;
            c->to = c->most == INT_MAX ? INT_MAX
                    : a.place > c->to  ? a.place
                                       : c->to;
            needed += a.is_needed;
            continue;
        }
        needed += a.depth == 0 && a.is == LUMAT_ARGUMENT;
        if (is_in(a.kind, "table") || is_in(a.kind, "list"))
            c->data |= 1u << a.place;
        if (a.is == LUMAT_ARGUMENT_MORE)
            c->most = INT_MAX;
        else if (a.place > c->most) {
            c->most = a.place;
            c->is_device = lumat_is_piece(a.kind, "device");
        }
    }
    c->most += c->is_device; /* to(A, device()): device() describes it, too */
    c->least = needed < c->least ? needed : c->least;
    c->unlooked = c->from > 0 && c->from <= c->most ? c->from - 1 : c->most;
}

/* A member's name without its owner. */
static const char *said(const lumat_function *f)
{
    const char *dot = strrchr(f->name, '.');
    return dot ? dot + 1 : f->name;
}

/* --- what is wrong ----------------------------------------------------------
 */

/* Of T:head(5, 6) two arguments are told of: T is none. */
static int raise_surplus(lua_State *L, const lumat_function *f, int count)
{
    if (f->on_mistake)
        f->on_mistake(L, f, count);
    const char *usage = lumat_push_usage(L, f);
    count -= strchr(f->name, '.') && usage[strcspn(usage, ":(")] == ':';
    return lumat_raise(L, "%s: %d argument%s too many: write %s", said(f),
                       count, count == 1 ? " is" : "s are", usage);
}

/* "A:mean(2)" of the arguments from `first` on. */
static int raise_dot(lua_State *L, const lumat_function *f, int count)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 1; i <= count; i++) {
        if (i > 1)
            luaL_addstring(&b, ", ");
        if (lua_isuserdata(L, i))
            lua_pushstring(L, lumat_name_of(L, i, "B"));
        else
            lumat_push_brief(L, i);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    return lumat_raise(L, "%s: a method is called with a colon: write A:%s(%s)",
                       f->name, f->name, lua_tostring(L, -1));
}

static void add_option_name(void *data, const lumat_option *option)
{
    luaL_Buffer *b = data;
    luaL_addstring(b, option->name);
    luaL_addchar(b, ' ');
}

/* The names of f's options, with a blank behind each. */
static const char *push_option_names(lua_State *L, const lumat_function *f)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    lumat_each_option(f, add_option_name, &b);
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

static int raise_unknown(lua_State *L, const lumat_function *f, const char *key)
{
    const char *names = push_option_names(L, f);
    size_t length = strlen(names);
    names = lua_pushlstring(L, names, length - (length > 0));
    if (strlen(key) > 40)
        return lumat_raise(L,
                           "%s: unknown option, of %I characters: there are "
                           "%s",
                           said(f), (LUAI_UACINT)strlen(key), names);
    const char *near = lumat_nearest(L, key, names);
    if (near)
        return lumat_raise(L, "%s: unknown option '%s': did you mean '%s'?",
                           said(f), key, near);
    return lumat_raise(L, "%s: unknown option '%s': there are %s", said(f), key,
                       names);
}

/* What is written where a matrix is expected and a frame or one of its columns
 * stands, by their names; NULL: it is none of these. */
static const char *instead_of_frame(lua_State *L, int index)
{
    static const char *const instead[][2] = {
        {"frame", "write T.v, one of its columns, or T:matrix(), all that are "
                  "numbers"},
        {"text column", "it has T.s:eq, isin, match and map; T:unique \"s\", "
                        "value_counts and groupby are of the frame"},
        {"date column", "write T.date.seconds"}};
    const char *found = NULL;
    if (luaL_getmetafield(L, index, "__name") == LUA_TNIL)
        return NULL;
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
        if (lua_type(L, -1) == LUA_TSTRING &&
            strcmp(lua_tostring(L, -1), instead[i][0]) == 0)
            found = instead[i][1];
    lua_pop(L, 1);
    return found;
}

/* "sum: A is 3, expected a matrix: write sum(A [, axis])": what is wrong with
 * every argument that is not what its row says. */
static int raise_kind(lua_State *L, const lumat_function *f, lumat_piece name,
                      int index, lumat_piece kind)
{
    const char *got = lua_isnone(L, index) ? lua_pushliteral(L, "missing")
                                           : lumat_push_brief(L, index);
    const gpu_sparse *s = lumat_look_at_sparse(L, index);
    const char *what = lua_pushlstring(L, name.start, name.length);
    const char *expected = lumat_push_kind(L, kind);
    if (s && s->values.storage &&
        (is_in(kind, "matrix") || is_in(kind, "square")))
        return lumat_raise(L, "%s: %s is %s, expected %s: write full(%s)",
                           said(f), what, got, expected, what);
    const char *instead = instead_of_frame(L, index);
    if (instead && (is_in(kind, "matrix") || is_in(kind, "vector") ||
                    is_in(kind, "square")))
        return lumat_raise(L, "%s: %s is %s, expected %s: %s", said(f), what,
                           got, expected, instead);
    return lumat_raise(L, "%s: %s is %s, expected %s: write %s", said(f), what,
                       got, expected, lumat_push_usage(L, f));
}

static int raise_options(lua_State *L, const lumat_function *f, int index)
{
    return lumat_raise(
        L, "%s: the options are %s, expected a table: write %s%s%s", said(f),
        lumat_push_brief(L, index), lumat_push_usage(L, f),
        f->instead ? "\n  " : "", f->instead ? f->instead : "");
}

/* Pushes ": did you mean 'line'?" where a string is like one of the kind's
 * words, else "". */
static const char *push_near_word(lua_State *L, int index, lumat_piece kind)
{
    lumat_piece one;
    luaL_Buffer b;
    if (lua_type(L, index) != LUA_TSTRING || lua_rawlen(L, index) > 40)
        return lua_pushliteral(L, "");
    const char *word = lua_tostring(L, index);
    luaL_buffinit(L, &b);
    while (lumat_next_kind(&kind, &one))
        if (*one.start == '"') {
            luaL_addlstring(&b, one.start + 1, one.length - 2);
            luaL_addchar(&b, ' ');
        }
    luaL_pushresult(&b);
    const char *near = lumat_nearest(L, word, lua_tostring(L, -1));
    return near ? lua_pushfstring(L, ": did you mean '%s'?", near)
                : lua_pushliteral(L, "");
}

static int raise_option_kind(lua_State *L, const lumat_function *f,
                             const char *key, int index, lumat_piece kind)
{
    const char *got = lumat_push_brief(L, index);
    const char *expected = lumat_push_kind(L, kind);
    const char *near = push_near_word(L, index, kind);
    return lumat_raise(L, "%s: %s is %s, expected %s%s", said(f), key, got,
                       expected, near);
}

/* --- options ----------------------------------------------------------------
 */

typedef struct gathering {
    lua_State *L;
    known_option *options;
    int count, names; /* the table that keeps their strings */
} gathering;

static void gather_option(void *data, const lumat_option *option)
{
    gathering *g = data;
    if (g->options) {
        lua_pushstring(g->L, option->name);
        g->options[g->count] = (known_option){
            lua_tostring(g->L, -1), lumat_read_kind(text_of(option->kind))};
        lua_rawseti(g->L, g->names, g->count + 1);
    }
    g->count++;
}

/* Kept in the user value of what is held against. */
static void gather_options(lua_State *L, checked *c)
{
    gathering g = {.L = L};
    lumat_each_option(c->row, gather_option, &g);
    lua_createtable(L, g.count, 1);
    g.names = lua_gettop(L);
    g.options = lua_newuserdatauv(L, (size_t)g.count * sizeof *g.options, 0);
    lua_setfield(L, g.names, "options");
    g.count = 0;
    lumat_each_option(c->row, gather_option, &g);
    lua_setiuservalue(L, lua_upvalueindex(1), 1);
    c->option_count = g.count;
    c->options = g.options;
}

/* Is what is on top what the option of that key may be? */
static int is_right(lua_State *L, const checked *c, const char *key)
{
    for (int i = 0; i < c->option_count; i++) {
        const known_option *o = &c->options[i];
        if (o->key == key)
            return lumat_is_kind(L, -1, &o->kind);
    }
    return 0;
}

/* As lumat_check_options, and faster where all is well. */
static void check_known(lua_State *L, checked *c, int index)
{
    if (!c->options)
        gather_options(L, c);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING &&
            is_right(L, c, lua_tostring(L, -2)))
            continue;
        lumat_check_options(L, index, c->row);
    }
}

/* --- checks -----------------------------------------------------------------
 */

void lumat_check_options(lua_State *L, int index, const lumat_function *f)
{
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        size_t length;
        if (lua_type(L, -2) != LUA_TSTRING)
            lumat_raise(L, "%s: options are named, as in {dtype=\"f64\"}",
                        said(f));
        const char *key = lua_tolstring(L, -2, &length);
        const lumat_option *option = lumat_find_option(f, key, length);
        if (!option) {
            raise_unknown(L, f, key);
            return;
        }
        lumat_kind kind = lumat_read_kind(text_of(option->kind));
        if (!lumat_is_kind(L, -1, &kind))
            raise_option_kind(L, f, key, -1, kind.text);
    }
}

/* Where a picture goes, its file's name alone, the string at index, stands for
 * {file = name}. */
static void take_file_name(lua_State *L, const lumat_function *f, int index)
{
    if (!lumat_find_option(f, "file", 4))
        return;
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, index);
    lua_setfield(L, -2, "file");
    lua_replace(L, index);
}

enum { MOST_PLACES = 8 * sizeof(unsigned) };

/* Is it a table of names, no list? */
static int has_names(lua_State *L, int index)
{
    if (lua_rawlen(L, index) > 0)
        return 0;
    lua_pushnil(L);
    int has_any = lua_next(L, index);
    lua_pop(L, 2 * has_any);
    return has_any;
}

static int is_options(lua_State *L, const checked *c, int index)
{
    if (c->from == 0 || index < c->from || index > c->to ||
        !lua_istable(L, index))
        return 0;
    return index >= MOST_PLACES || !(c->data >> index & 1) ||
           has_names(L, index);
}

static void raise_more(lua_State *L, const checked *c, int count)
{
    const lumat_function *f = c->row;
    if (f->on_mistake)
        f->on_mistake(L, f, count);
    if (c->from > 0 && count <= c->to)
        raise_options(L, f, count);
    raise_surplus(L, f, count);
}

/* More arguments than can be counted without a look: the last one may be the
 * table of options, of which it returns whether they are the last indeed. Nils
 * at the end are as good as left out. */
static int check_many(lua_State *L, checked *c, int count)
{
    int all = count, type = LUA_TNIL;
    while (count > 0 && (type = lua_type(L, count)) == LUA_TNIL)
        count--;
    if (type == LUA_TSTRING && c->from > 0 && count >= c->from &&
        count <= c->to)
        take_file_name(L, c->row, count);
    for (int i = c->from; i > 0 && i < count; i++)
        if (is_options(L, c, i))
            raise_surplus(L, c->row, count);
    int has_options = is_options(L, c, count);
    if (has_options)
        check_known(L, c, count);
    else if (count > c->most)
        raise_more(L, c, count);
    return has_options && count == all;
}

/* --- kinds of arguments ------------------------------------------------------
 *
 * A call is right when it has one of its row's forms. Else it is told of the
 * form that it is nearest to: of those with room for so many arguments the one
 * that it leaves last. */

static void may_lack(lumat_kind *kind, int is_so)
{
    kind->all |= (unsigned)is_so << LUA_TNIL;
    kind->quick |= (unsigned)is_so << LUA_TNIL;
}

/* Of many arguments one that is nil is a variable that was never set. */
static void must_be(lumat_kind *kind)
{
    kind->all &= ~(1u << LUA_TNIL);
    kind->quick &= ~(1u << LUA_TNIL);
}

/* Counts the row's forms and returns how many arguments they have; where
 * c->forms is there, fills it and c->arguments. */
static int read_forms(checked *c)
{
    lumat_argument a = {.rest = c->row->takes};
    known_form none = {.first = 0}, *f = &none;
    int count = 0;
    c->form_count = 0;
    while (lumat_next_argument(&a)) {
        if (a.form == c->form_count) {
            f = c->forms ? &c->forms[a.form] : &none;
            *f = (known_form){.first = count};
            c->form_count++;
        }
        if (a.is == LUMAT_ARGUMENT_MORE)
            f->has_more = 1;
        if (a.is == LUMAT_ARGUMENT_MORE && c->forms && count > 0)
            must_be(&c->arguments[count - 1].kind);
        if (a.is == LUMAT_ARGUMENT_OPTIONS)
            f->has_options = 1, f->needs_options = a.is_needed;
        if (a.is != LUMAT_ARGUMENT)
            continue;
        f->count++;
        f->needed += a.depth == 0;
        if (c->forms) {
            c->arguments[count] =
                (known_argument){a.name, lumat_read_kind(a.kind)};
            may_lack(&c->arguments[count].kind, a.depth > 0);
        }
        count++;
    }
    return count;
}

static void read_types(const checked *c, known_form *f)
{
    const known_argument *a = &c->arguments[f->first];
    int last = f->count - 1;
    for (int i = 0; i < QUICK && f->count > 0; i++) {
        const lumat_kind *kind = &a[i < last ? i : last].kind;
        f->quick.types[i] = (unsigned short)kind->quick;
    }
    f->quick.least = f->needs_options || c->is_lua ? INT_MAX : f->needed;
    f->quick.most = f->has_more || f->count > QUICK ? QUICK : f->count;
    f->quick.has_options = f->has_options && !f->has_more;
}

/* Kept in the second user value of what is held against. */
static void gather_forms(lua_State *L, checked *c)
{
    int arguments = read_forms(c);
    size_t bytes = (size_t)arguments * sizeof *c->arguments;
    char *memory = lua_newuserdatauv(
        L, bytes + (size_t)c->form_count * sizeof *c->forms, 0);
    c->arguments = (known_argument *)memory;
    c->forms = (known_form *)(memory + bytes);
    read_forms(c);
    for (int i = 0; i < c->form_count; i++)
        read_types(c, &c->forms[i]);
    if (c->form_count > 0)
        c->quick = c->forms[0].quick;
    else
        c->quick = (quick_form){.least = 0, .most = 0};
    lua_setiuservalue(L, lua_upvalueindex(1), 2);
}

/* The place of the first of `count` arguments that does not fit those that the
 * form names, or of the one that is missing; 0: they fit. */
static int find_wrong(lua_State *L, const checked *c, const known_form *f,
                      int count)
{
    const known_argument *a = &c->arguments[f->first];
    int most = count < f->count ? count : f->count, i;
    for (i = 0; i < most && lumat_is_kind(L, i + 1, &a[i].kind); i++)
        ;
    if (i < most)
        return i + 1;
    return count < f->needed ? count + 1 : 0;
}

/* Does a form need an argument at a place to which all is as it says? A nil
 * there is a variable that was never set. */
static int is_needed(lua_State *L, const checked *c, int place)
{
    for (int i = 0; i < c->form_count; i++)
        if (place <= c->forms[i].needed &&
            find_wrong(L, c, &c->forms[i], place) == place)
            return 1;
    return 0;
}

/* Is it what device() tells beside the name before it? Another word there, a
 * dtype, was meant to do something. */
static int describes_device(lua_State *L, int index)
{
    gpu_device *d;
    if (lua_type(L, index) != LUA_TSTRING ||
        lua_type(L, index - 1) != LUA_TSTRING ||
        gpu_open(lua_tostring(L, index - 1), &d) != GPU_OK)
        return 0;
    return strcmp(lua_tostring(L, index), gpu_device_description(d)) == 0;
}

/* May the argument behind those of the form be there? */
static int is_left_over(lua_State *L, const checked *c, const known_form *f,
                        int place)
{
    int type = lua_type(L, place), is_next = place == f->count + 1;
    if (f->has_more && !(f->has_options && type == LUA_TTABLE))
        return lumat_is_kind(L, place,
                             &c->arguments[f->first + f->count - 1].kind);
    if (f->has_more)
        return place == lua_gettop(L);
    if (type == LUA_TNIL)
        return !is_needed(L, c, place);
    return is_next && ((type == LUA_TTABLE && f->has_options) ||
                       (c->is_device && describes_device(L, place)));
}

/* The same of all that the form may hold. */
static int find_misfit(lua_State *L, const checked *c, const known_form *f,
                       int count)
{
    int place = find_wrong(L, c, f, count);
    if (place > f->needed && place == count && f->has_options &&
        lua_istable(L, count))
        return 0; /* in place of those left out */
    for (int i = f->count + 1; place == 0 && i <= count; i++)
        if (!is_left_over(L, c, f, i))
            return i;
    if (place == 0 && f->needs_options && !lua_istable(L, f->count + 1))
        return f->count + 1;
    return place;
}

static int has_room(lua_State *L, const known_form *f, int count)
{
    return f->has_more ||
           count <= f->count + (f->has_options && lua_istable(L, count));
}

static int takes_matrix(const checked *c, const known_form *f, int place)
{
    return is_in(c->arguments[f->first + place - 1].kind.text, "matrix");
}

/* Is f's misfit told rather than that of another form at the same place? The
 * name of an argument rather than the options; a sparse matrix in place of a
 * dense one. */
static int says_more(lua_State *L, const checked *c, const known_form *f,
                     const known_form *other, int place)
{
    if (place > f->count || place > other->count)
        return place <= f->count;
    return lumat_look_at_sparse(L, place) && takes_matrix(c, f, place) &&
           !takes_matrix(c, other, place);
}

/* The argument of the form at a place; those of … have no name. */
static void raise_at(lua_State *L, const checked *c, const known_form *f,
                     int place)
{
    int last = place > f->count ? f->count : place;
    const known_argument *a = &c->arguments[f->first + last - 1];
    lumat_piece name = a->name;
    if (place > f->count)
        name = text_of(lua_pushfstring(L, "argument %d", place));
    raise_kind(L, c->row, name, place, a->kind.text);
}

/* Of so many arguments; returns when one form has nothing against them. */
static void raise_misfit(lua_State *L, const checked *c, int count)
{
    const known_form *nearest = NULL;
    int place = 0;
    for (int i = 0; i < c->form_count; i++) {
        const known_form *f = &c->forms[i];
        int misfit = find_misfit(L, c, f, count);
        if (misfit == 0)
            return;
        int more =
            nearest ? has_room(L, f, count) - has_room(L, nearest, count) : 1;
        if (more > 0 || (more == 0 && (misfit > place ||
                                       (misfit == place &&
                                        says_more(L, c, f, nearest, place)))))
            place = misfit, nearest = f;
    }
    if (c->row->on_mistake)
        c->row->on_mistake(L, c->row, count);
    if (place <= nearest->count || nearest->has_more)
        raise_at(L, c, nearest, place);
    if (nearest->has_options)
        raise_options(L, c->row, place);
    raise_surplus(L, c->row, count);
}

/* What is wrong up to arg; returns when nothing is that the kinds know of. An
 * argument in front of arg is told where no form goes with it. */
static void raise_refused(lua_State *L, const checked *c, int arg)
{
    const known_form *told = NULL;
    int place = 0, fits = 0;
    for (int i = 0; i < c->form_count; i++) {
        const known_form *f = &c->forms[i];
        int misfit = arg <= f->count || f->has_more ? find_misfit(L, c, f, arg)
                                                    : arg + 1;
        if (misfit > arg)
            continue;
        fits += misfit == 0;
        if (misfit > place ||
            (misfit > 0 && misfit == place && says_more(L, c, f, told, place)))
            told = f, place = misfit;
    }
    if (place == 0 || (place < arg && fits))
        return;
    if (c->row->on_mistake)
        c->row->on_mistake(L, c->row, arg);
    raise_at(L, c, told, place);
}

/* By the Lua types alone. To look at the values, too, made a 2x2 A:sum() 7 %
 * and v:dot(v) 30 % slower; functions in C do it as they read them. */
static int may_fit(lua_State *L, const quick_form *f, int count)
{
    if (count < f->least || count > f->most)
        return 0;
    for (int i = 0; i < count; i++)
        if (!(f->types[i] >> lua_type(L, i + 1) & 1))
            return 0;
    return 1;
}

/* The argument that arg is in the form of the call; of several that of the
 * first with nothing against all there is, or against what is up to arg. */
static const known_argument *find_argument(lua_State *L, const checked *c,
                                           int arg)
{
    const known_argument *found = NULL;
    int is_sure = 0;
    for (int i = 0; i < c->form_count; i++) {
        const known_form *f = &c->forms[i];
        if (arg > f->count)
            continue;
        const known_argument *a = &c->arguments[f->first + arg - 1];
        if (find_misfit(L, c, f, lua_gettop(L)) == 0)
            return a;
        int misfit = find_wrong(L, c, f, arg);
        if (!found || (!is_sure && misfit == 0))
            found = a, is_sure = misfit == 0;
    }
    return found;
}

/* A distributed matrix does by its method what the function does of others: the
 * results take the arguments' place. */
static int hand_over(lua_State *L, const lumat_function *f, int count)
{
    if (count == 0 || !lumat_is_distributed(L, 1))
        return 0;
    lua_getfield(L, 1, f->name);
    lua_insert(L, 1);
    lua_call(L, count, LUA_MULTRET);
    return 1;
}

/* 0: the call was handed over. */
static int check_kinds(lua_State *L, checked *c, int count)
{
    if (!c->forms)
        gather_forms(L, c);
    for (int i = 0; i < c->form_count; i++)
        if (may_fit(L, &c->forms[i].quick, count))
            return 1;
    for (int i = 0; i < c->form_count; i++)
        if (find_misfit(L, c, &c->forms[i], count) == 0)
            return 1;
    if (hand_over(L, c->row, count))
        return 0;
    if (c->form_count > 0)
        raise_misfit(L, c, count);
    return 1;
}

/* --- calls -------------------------------------------------------------------
 */

/* The row; NULL: the call was handed over, and the stack has its results. */
static const lumat_function *check_call(lua_State *L)
{
    checked *c = lua_touserdata(L, lua_upvalueindex(1));
    int count = lua_gettop(L), has_options = 0;
    if (count > c->unlooked)
        has_options = check_many(L, c, count);
    if (!(has_options && !c->quick.has_options) &&
        may_fit(L, &c->quick, count - has_options))
        return c->row;
    return check_kinds(L, c, count) ? c->row : NULL;
}

/* A.mean(2) on the way to A:mean(2). */
static const lumat_function *check_method(lua_State *L)
{
    const checked *c = lua_touserdata(L, lua_upvalueindex(1));
    int count = lua_gettop(L);
    lua_Debug ar;
    if (lua_type(L, 1) != LUA_TUSERDATA)
        raise_dot(L, c->row, count);
    if (count < c->least && lua_getstack(L, 0, &ar) &&
        lua_getinfo(L, "n", &ar) && strcmp(ar.namewhat, "field") == 0)
        raise_dot(L, c->row, count);
    return check_call(L);
}

static int call(lua_State *L)
{
    const lumat_function *f = check_call(L);
    return f ? f->call(L) : lua_gettop(L);
}

static int call_method(lua_State *L)
{
    const lumat_function *f = check_method(L);
    return f ? f->call(L) : lua_gettop(L);
}

/* --- functions of Lua -------------------------------------------------------
 */

/* Where a message says that a file of the library raised it, the caller's
 * place is put there: "file:12: text" on top. */
static void replace_place(lua_State *L)
{
    const char *text =
        lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    const char *colon = strchr(text, ':');
    const lumat_std *file = lumat_std_files;
    for (; colon && file->name; file++)
        if (strlen(file->name) == (size_t)(colon - text) &&
            memcmp(file->name, text, (size_t)(colon - text)) == 0)
            break;
    if (!colon || !file->name)
        return;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || strncmp(colon + 1 + digits, ": ", 2) != 0)
        return;
    luaL_where(L, 1);
    lua_pushstring(L, colon + 3 + digits);
    lua_concat(L, 2);
    lua_replace(L, -2);
}

/* Upvalues: checked, the function. */
static int finish_lua(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L);
    replace_place(L);
    return lua_error(L);
}

static int run_lua(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    int status =
        lua_pcallk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, 0, finish_lua);
    return finish_lua(L, status, 0);
}

static int call_lua(lua_State *L)
{
    return check_call(L) ? run_lua(L) : lua_gettop(L);
}

static int call_lua_method(lua_State *L)
{
    return check_method(L) ? run_lua(L) : lua_gettop(L);
}

/* --- closures ---------------------------------------------------------------
 */

static checked *push_measured(lua_State *L, const lumat_function *f)
{
    checked *c = lua_newuserdatauv(L, sizeof *c, 2);
    measure(f, c);
    return c;
}

void lumat_push_checked(lua_State *L, const lumat_function *f)
{
    push_measured(L, f);
    lua_pushcclosure(L, call, 1);
}

void lumat_push_checked_lua(lua_State *L, const lumat_function *f, int index)
{
    index = lua_absindex(L, index);
    push_measured(L, f)->is_lua = 1;
    lua_pushvalue(L, index);
    lua_pushcclosure(L, call_lua, 2);
}

void lumat_push_method(lua_State *L)
{
    int is_lua = lua_tocfunction(L, -1) == call_lua;
    lua_getupvalue(L, -1, 1);
    if (is_lua)
        lua_getupvalue(L, -2, 2);
    lua_pushcclosure(L, is_lua ? call_lua_method : call_method, 1 + is_lua);
}

static const checked *checked_of(lua_State *L, int index)
{
    lua_CFunction f = lua_tocfunction(L, index);
    if (f != call && f != call_method && f != call_lua && f != call_lua_method)
        return NULL;
    lua_getupvalue(L, index, 1);
    const checked *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return c;
}

const lumat_function *lumat_row_of(lua_State *L, int index)
{
    const checked *c = checked_of(L, index);
    return c ? c->row : NULL;
}

/* Of the function that runs; NULL: it is none of the library's. */
static const checked *running(lua_State *L)
{
    lua_Debug ar;
    if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "f", &ar))
        return NULL;
    const checked *c = checked_of(L, -1);
    lua_pop(L, 1);
    return c && c->forms ? c : NULL;
}

void lumat_refuse_kind(lua_State *L, int arg)
{
    const checked *c = running(L);
    if (c && arg > 0 && !lua_isnone(L, arg))
        raise_refused(L, c, arg);
}

int lumat_raise_argument(lua_State *L, int arg, const char *text, ...)
{
    const checked *c = running(L);
    const known_argument *a = c ? find_argument(L, c, arg) : NULL;
    va_list values;
    luaL_where(L, 1);
    if (c)
        lua_pushfstring(L, "%s: ", said(c->row));
    else
        lua_pushliteral(L, "");
    if (a)
        lua_pushlstring(L, a->name.start, a->name.length);
    else
        lua_pushfstring(L, "argument %d", arg);
    lua_pushliteral(L, " ");
    va_start(values, text);
    lua_pushvfstring(L, text, values);
    va_end(values);
    lua_concat(L, 5);
    return lua_error(L);
}

const lumat_function *lumat_running_row(lua_State *L)
{
    const checked *c = lua_touserdata(L, lua_upvalueindex(1));
    return c->row;
}
