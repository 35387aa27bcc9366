/* Settings: their values, and what their rows say of them. */
#include "settings.h"
#include "fence.h"
#include "value.h"

#include <stdlib.h>
#include <string.h>

static lumat_settings now = {
#define SETTING(name, kind, least, most, otherwise, help) .name = otherwise,
#define ELSEWHERE(name, kind, otherwise, help)
#define ALSO(name, other)
#include "settings.def"
};

lumat_settings *lumat_settings_now(void)
{
    return &now;
}

/* --- those that are kept elsewhere ---------------------------------------- */
/* get_… pushes the value; set_… takes a word, and raises why it cannot. */

static void get_dtype(lua_State *L)
{
    lua_pushstring(L, gpu_dtype_name(lumat_default_dtype(L)));
}

static void set_dtype(lua_State *L, const char *name)
{
    gpu_dtype type;
    lumat_try(L, gpu_dtype_find(name, &type) ? GPU_OK : GPU_TYPE);
    lumat_set_default_dtype(type);
}

static void get_device(lua_State *L)
{
    lua_pushstring(L, gpu_default_name());
}

static void set_device(lua_State *L, const char *name)
{
    gpu_device *d;
    if (strcmp(name, "auto") != 0)
        lumat_try(L, gpu_open(name, &d));
    lumat_try(L, gpu_set_default(name));
}

static const char *const fusions[GPU_FUSIONS] = {"on", "off", "always"};

static void get_fusion(lua_State *L)
{
    lua_pushstring(L, fusions[gpu_get_fusion()]);
}

static int find_fusion(const char *name)
{
    int fusion = GPU_FUSION_ON;
    while (fusion < GPU_FUSIONS && strcmp(fusions[fusion], name) != 0)
        fusion++;
    return fusion;
}

static void set_fusion(lua_State *L, const char *name)
{
    int fusion = find_fusion(name);
    lumat_try(L, fusion < GPU_FUSIONS ? gpu_settle_all() : GPU_ARGUMENT);
    gpu_set_fusion((gpu_fusion)fusion);
}

/* The environment's LUMAT_FUSION, where it has one. */
static void take_fusion(void)
{
    const char *wish = getenv("LUMAT_FUSION");
    int fusion = wish ? find_fusion(wish) : GPU_FUSIONS;
    if (fusion < GPU_FUSIONS)
        gpu_set_fusion((gpu_fusion)fusion);
}

static const char *const compiles[GPU_COMPILES] = {"off", "on", "always"};

static void get_compile(lua_State *L)
{
    lua_pushstring(L, compiles[gpu_get_compile()]);
}

static int find_compile(const char *name)
{
    int compile = GPU_COMPILE_OFF;
    while (compile < GPU_COMPILES && strcmp(compiles[compile], name) != 0)
        compile++;
    return compile;
}

/* Compiling starts a program and writes files. */
static void set_compile(lua_State *L, const char *name)
{
    int compile = find_compile(name);
    lumat_try(L, compile < GPU_COMPILES ? GPU_OK : GPU_ARGUMENT);
    if (compile != GPU_COMPILE_OFF && lumat_is_safe())
        luaL_error(L,
                   "settings: compile is \"%s\", but --safe starts no other "
                   "program",
                   name);
    gpu_set_compile((gpu_compile)compile);
}

/* --- the rows ------------------------------------------------------------- */

static const struct setting {
    const char *name, *kind, *help;
    int *value; /* NULL: kept elsewhere */
    int least, most;
    int otherwise;
    const char *otherwise_word;
    void (*get)(lua_State *L);
    void (*set)(lua_State *L, const char *word);
} list[] = {
#define SETTING(name, kind, least, most, otherwise, help) \
    {#name, kind, help, &now.name, least, most, otherwise, NULL, NULL, NULL},
#define ELSEWHERE(name, kind, otherwise, help) \
    {#name, kind, help, NULL, 0, -1, 0, otherwise, get_##name, set_##name},
#define ALSO(name, other)
#include "settings.def"
};

enum { COUNT = sizeof list / sizeof *list };

static const char *const also[][2] = {
#define SETTING(name, kind, least, most, otherwise, help)
#define ELSEWHERE(name, kind, otherwise, help)
#define ALSO(name, other) {#name, #other},
#include "settings.def"
};

enum { ALSO_COUNT = sizeof also / sizeof *also };

static const struct setting *find(const char *name, size_t length)
{
    for (int i = 0; i < ALSO_COUNT; i++)
        if (strlen(also[i][0]) == length &&
            memcmp(also[i][0], name, length) == 0)
            return find(also[i][1], strlen(also[i][1]));
    for (int i = 0; i < COUNT; i++)
        if (strlen(list[i].name) == length &&
            memcmp(list[i].name, name, length) == 0)
            return &list[i];
    return NULL;
}

/* As the environment's LUMAT_COMPILE says, where it has one. */
static void take_compile(void)
{
    const char *wish = getenv("LUMAT_COMPILE");
    int compile = wish ? find_compile(wish) : GPU_COMPILES;
    if (compile == GPU_COMPILES)
        compile =
            find_compile(find("compile", strlen("compile"))->otherwise_word);
    gpu_set_compile(lumat_is_safe() ? GPU_COMPILE_OFF : (gpu_compile)compile);
}

/* The next word in a kind, which goes on behind it; NULL: there is none. */
static const char *next_word(const char **kind, size_t *length)
{
    const char *word = strchr(*kind, '"');
    if (!word)
        return NULL;
    *length = strcspn(++word, "\"");
    *kind = word + *length + 1;
    return word;
}

/* --- values --------------------------------------------------------------- */

/* Pushes what the number stands for: a word below s->least. */
static void push_value(lua_State *L, const struct setting *s, int value)
{
    const char *kind = s->kind, *word;
    size_t length;
    for (int i = 0; (word = next_word(&kind, &length)) != NULL; i++)
        if (i == value) {
            lua_pushlstring(L, word, length);
            return;
        }
    lua_pushinteger(L, value);
}

/* Takes the value at index; 0: it is none. */
static int take_value(lua_State *L, const struct setting *s, int index)
{
    const char *kind = s->kind, *word;
    size_t length, n;
    int exact;
    for (int i = 0; (word = next_word(&kind, &length)) != NULL; i++)
        if (lua_type(L, index) == LUA_TSTRING &&
            strncmp(lua_tolstring(L, index, &n), word, length) == 0 &&
            n == length) {
            *s->value = i;
            return 1;
        }
    lua_Integer value = lua_tointegerx(L, index, &exact);
    if (!exact || value < s->least || value > s->most)
        return 0;
    *s->value = (int)value;
    return 1;
}

static const struct setting *check_name(lua_State *L)
{
    size_t length;
    const char *name = luaL_checklstring(L, 1, &length);
    const struct setting *s = find(name, length);
    luaL_argcheck(L, s, 1, "is a setting's name");
    return s;
}

/* set(name, value): false where it is no value of it */
static int set_value(lua_State *L)
{
    const struct setting *s = check_name(L);
    int is_set = 1;
    lua_settop(L, 2);
    lumat_refuse_dry(L, "settings");
    if (s->set)
        s->set(L, luaL_checkstring(L, 2));
    else
        is_set = take_value(L, s, 2);
    lua_pushboolean(L, is_set);
    return 1;
}

/* get(name): its value, and its name as in its row */
static int get_value(lua_State *L)
{
    const struct setting *s = check_name(L);
    if (s->get)
        s->get(L);
    else
        push_value(L, s, *s->value);
    lua_pushstring(L, s->name);
    return 2;
}

/* --- what is told of them ------------------------------------------------- */

void lumat_each_setting(const char *text, size_t length, lumat_name_fn *each,
                        void *data)
{
    for (int i = 0; i < COUNT; i++)
        if (strncmp(list[i].name, text, length) == 0)
            each(data, list[i].name, list[i].help);
}

void lumat_each_setting_word(const char *name, size_t name_length,
                             const char *text, size_t length,
                             lumat_name_fn *each, void *data)
{
    const struct setting *s = find(name, name_length);
    const char *kind = s ? s->kind : "", *word;
    char copy[32];
    size_t n;
    while ((word = next_word(&kind, &n)) != NULL)
        if (n < sizeof copy && strncmp(word, text, length) == 0) {
            memcpy(copy, word, n);
            copy[n] = '\0';
            each(data, copy, "");
        }
}

/* Sets field `name` of the table on top to the string. */
static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

/* Pushes {{name=, kind=, help=, least=, most=, otherwise=}, …}. */
static void push_rows(lua_State *L)
{
    lua_createtable(L, COUNT, 0);
    for (int i = 0; i < COUNT; i++) {
        const struct setting *s = &list[i];
        lua_createtable(L, 0, 8);
        set_text(L, "name", s->name);
        set_text(L, "kind", s->kind);
        set_text(L, "help", s->help);
        lumat_set_count(L, "least", (uint64_t)s->least);
        lumat_set_count(L, "most", (uint64_t)s->most);
        if (s->otherwise_word)
            lua_pushstring(L, s->otherwise_word);
        else
            push_value(L, s, s->otherwise);
        lua_setfield(L, -2, "otherwise");
        lua_rawseti(L, -2, i + 1);
    }
}

void lumat_open_settings(lua_State *L)
{
    static const luaL_Reg own[] = {
        {"get", get_value}, {"set", set_value}, {NULL, NULL}};
    take_fusion();
    take_compile();
    luaL_newlib(L, own);
    push_rows(L);
    lua_setfield(L, -2, "rows");
    lua_newtable(L);
    for (int i = 0; i < ALSO_COUNT; i++)
        set_text(L, also[i][0], also[i][1]);
    lua_setfield(L, -2, "also");
    lumat_set_required(L, "settings");
}
