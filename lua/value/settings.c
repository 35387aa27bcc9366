/* Settings: one table gives their names, values and help; each can be looked
 * at and set, at the prompt and from Lua. */
#include "settings.h"
#include "value.h"

#include <stdio.h>
#include <string.h>

enum { AUTO_ROWS = 0 };

static lumat_limits limits = {.digits = 5, .rows = AUTO_ROWS, .edge = 4};
static lumat_colour colour;

static const char *const colours[] = {"auto", "always", "never"};

const lumat_limits *lumat_print_limits(void)
{
    return &limits;
}

void lumat_set_colour(lumat_colour when)
{
    colour = when;
}

lumat_colour lumat_get_colour(void)
{
    return colour;
}

/* --- one setting ---------------------------------------------------------- */

/* Pushes the value. */
typedef void get_fn(lua_State *L);
/* Takes the value at index; 0: it is no such value. */
typedef int set_fn(lua_State *L, int index);

static int take_number(lua_State *L, int index, int least, int most, int *out)
{
    int exact;
    lua_Integer n = lua_tointegerx(L, index, &exact);
    if (!exact || n < least || n > most)
        return 0;
    *out = (int)n;
    return 1;
}

static int is_text(lua_State *L, int index, const char *text)
{
    const char *value = lua_tostring(L, index);
    return value && strcmp(value, text) == 0;
}

static void get_digits(lua_State *L)
{
    lua_pushinteger(L, limits.digits);
}

static int set_digits(lua_State *L, int index)
{
    return take_number(L, index, 3, 17, &limits.digits);
}

static void get_rows(lua_State *L)
{
    if (limits.rows == AUTO_ROWS)
        lua_pushliteral(L, "auto");
    else
        lua_pushinteger(L, limits.rows);
}

static int set_rows(lua_State *L, int index)
{
    if (!is_text(L, index, "auto"))
        return take_number(L, index, 7, 1000, &limits.rows);
    limits.rows = AUTO_ROWS;
    return 1;
}

static void get_edge(lua_State *L)
{
    lua_pushinteger(L, limits.edge);
}

static int set_edge(lua_State *L, int index)
{
    return take_number(L, index, 1, 100, &limits.edge);
}

static void get_colour(lua_State *L)
{
    lua_pushstring(L, colours[colour]);
}

static int set_colour(lua_State *L, int index)
{
    for (int i = LUMAT_COLOUR_AUTO; i <= LUMAT_COLOUR_NEVER; i++)
        if (is_text(L, index, colours[i])) {
            colour = (lumat_colour)i;
            return 1;
        }
    return 0;
}

static void get_dtype(lua_State *L)
{
    lua_pushstring(L, gpu_dtype_name(lumat_default_dtype(L)));
}

static int set_dtype(lua_State *L, int index)
{
    gpu_dtype type;
    const char *name = lua_tostring(L, index);
    if (!name || !gpu_dtype_find(name, &type) || type == GPU_BOOL)
        return 0;
    lua_pushinteger(L, type);
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.dtype");
    return 1;
}

static void get_device(lua_State *L)
{
    lua_pushstring(L, gpu_default_name());
}

/* Without the device it raises why. */
static int set_device(lua_State *L, int index)
{
    gpu_device *d;
    const char *name = lua_tostring(L, index);
    if (!name)
        return 0;
    if (strcmp(name, "auto") != 0)
        lumat_try(L, gpu_open(name, &d));
    lumat_try(L, gpu_set_default(name));
    return 1;
}

static const struct setting {
    const char *name, *values, *help;
    const char *words; /* values to complete */
    get_fn *get;
    set_fn *set;
} list[] = {
    {"digits", "3 to 17", "significant digits of printed matrices", "",
     get_digits, set_digits},
    {"rows", "7 to 1000 or auto", "rows a printed matrix has before it is cut",
     "auto", get_rows, set_rows},
    {"edge", "1 to 100", "first rows shown of one that is cut; half of it last",
     "", get_edge, set_edge},
    {"colour", "auto, always or never", "colours on the screen",
     "auto always never", get_colour, set_colour},
    {"dtype", "f32 or f64", "element type of new matrices", "f32 f64",
     get_dtype, set_dtype},
    {"device", "auto, cpu, cuda or cuda:N", "where new matrices live",
     "auto cpu cuda", get_device, set_device}};

enum { COUNT = sizeof list / sizeof *list };

static const char names[] = "digits rows edge colour dtype device";

/* "color" is as good. */
static const struct setting *find(const char *name)
{
    if (strcmp(name, "color") == 0)
        name = "colour";
    for (int i = 0; i < COUNT; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static const struct setting *check(lua_State *L, const char *name)
{
    const struct setting *s = find(name);
    if (s)
        return s;
    const char *near = strlen(name) <= 40 ? lumat_nearest(L, name, names) : "";
    if (near && *near)
        lumat_raise(L, "settings: no '%s' here: did you mean %s?", name, near);
    lumat_raise(L, "settings: no such setting: there are %s", names);
    return NULL;
}

/* Sets it to the value at index. */
static void set(lua_State *L, const struct setting *s, int index)
{
    index = lua_absindex(L, index);
    lumat_refuse_dry(L, "settings");
    if (!s->set(L, index))
        lumat_raise(L, "settings: %s is %s, not %s", s->name, s->values,
                    lumat_push_brief(L, index));
}

/* --- all of them ---------------------------------------------------------- */

/* Adds "digits  6    significant digits … (3 to 17)". */
static void add_line(lua_State *L, luaL_Buffer *b, const struct setting *s)
{
    char line[160];
    s->get(L);
    snprintf(line, sizeof line, "%-8s %-7s %s (%s)", s->name,
             lumat_tolstring(L, -1, NULL), s->help, s->values);
    lua_pop(L, 2);
    luaL_addstring(b, line);
}

static void push_list(lua_State *L)
{
    luaL_Buffer b;
    luaL_buffinitsize(L, &b, 1024);
    for (int i = 0; i < COUNT; i++) {
        if (i > 0)
            luaL_addchar(&b, '\n');
        add_line(L, &b, &list[i]);
    }
    luaL_pushresult(&b);
}

static int show(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/* settings([{name = value}]): a table of all, which shows itself as a list. */
int lumat_settings(lua_State *L)
{
    lua_settop(L, 1);
    if (!lua_isnil(L, 1))
        luaL_checktype(L, 1, LUA_TTABLE);
    for (lua_pushnil(L); lua_istable(L, 1) && lua_next(L, 1); lua_pop(L, 1)) {
        if (lua_type(L, 2) != LUA_TSTRING)
            return luaL_argerror(L, 1,
                                 "settings are named, as in {digits = 6}");
        set(L, check(L, lua_tostring(L, 2)), 3);
    }
    lua_settop(L, 0);
    lua_createtable(L, 0, COUNT);
    for (int i = 0; i < COUNT; i++) {
        list[i].get(L);
        lua_setfield(L, 1, list[i].name);
    }
    lua_createtable(L, 0, 1);
    push_list(L);
    lua_pushcclosure(L, show, 1);
    lua_setfield(L, 2, "__tostring");
    lua_setmetatable(L, 1);
    return 1;
}

/* --- the prompt's --------------------------------------------------------- */

/* Called protected: (name, value) -> text. */
static int change(lua_State *L)
{
    const char *name = lua_tostring(L, 1), *value = lua_tostring(L, 2);
    if (!*name) {
        push_list(L);
        return 1;
    }
    const struct setting *s = check(L, name);
    if (*value) {
        if (!lua_stringtonumber(L, value))
            lua_pushvalue(L, 2);
        set(L, s, -1);
    }
    s->get(L);
    lua_pushfstring(L, "%s = %s%s", s->name, lumat_tolstring(L, -1, NULL),
                    *value ? "" : "   ");
    if (!*value) {
        lua_pushfstring(L, "%s (%s)", s->help, s->values);
        lua_concat(L, 2);
    }
    return 1;
}

const char *lumat_setting_words(const char *name, size_t length)
{
    for (int i = 0; i < COUNT; i++)
        if (strlen(list[i].name) == length &&
            memcmp(list[i].name, name, length) == 0)
            return list[i].words;
    return "";
}

int lumat_push_setting(lua_State *L, const char *name, const char *value)
{
    lua_pushcfunction(L, change);
    lua_pushstring(L, name);
    lua_pushstring(L, value);
    return lua_pcall(L, 2, 1, 0) == LUA_OK;
}
