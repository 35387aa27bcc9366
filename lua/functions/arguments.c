/* Arguments and options that many functions take: sizes, an axis, numbers, a
 * matrix for the result. */
#include "arguments.h"
#include "op_list.h"
#include "value.h"

/* Raises what keeps the value at arg from being a number: that it is unknown,
 * or of another kind. */
static void refuse_number(lua_State *L, int arg)
{
    if (lumat_is_unknown(L, arg)) {
        lua_getiuservalue(L, arg, 1);
        lumat_raise(L,
                    "what is done depends on elements (%s): it has to be run",
                    lua_tostring(L, -1));
    }
    lumat_refuse_kind(L, arg);
}

double lumat_check_number(lua_State *L, int arg)
{
    if (lua_type(L, arg) != LUA_TNUMBER)
        refuse_number(L, arg);
    return luaL_checknumber(L, arg);
}

lua_Integer lumat_check_integer(lua_State *L, int arg)
{
    int exact = 0;
    lua_Integer i = 0;
    if (lua_type(L, arg) == LUA_TNUMBER)
        i = lua_tointegerx(L, arg, &exact);
    if (exact)
        return i;
    refuse_number(L, arg);
    return luaL_checkinteger(L, arg);
}

lua_Integer lumat_optional_integer(lua_State *L, int arg, lua_Integer otherwise)
{
    return lua_isnoneornil(L, arg) ? otherwise : lumat_check_integer(L, arg);
}

int64_t lumat_check_size(lua_State *L, int arg)
{
    int exact = 0;
    lua_Integer n = 0;
    if (lua_type(L, arg) == LUA_TNUMBER)
        n = lua_tointegerx(L, arg, &exact);
    if (exact && n >= 0)
        return n;
    if (lumat_is_unknown(L, arg)) {
        lua_getiuservalue(L, arg, 1);
        lumat_raise(L, "a size depends on elements (%s): it has to be run",
                    lua_tostring(L, -1));
    }
    lumat_refuse_kind(L, arg);
    return luaL_argerror(L, arg, "is no size");
}

gpu_matrix *lumat_check_vector(lua_State *L, int arg)
{
    gpu_matrix *m = lumat_check_matrix(L, arg);
    if (m->ndim == 2)
        lumat_refuse_kind(L, arg);
    if (m->ndim == 2)
        lumat_raise_argument(L, arg, "is a matrix, expected a vector");
    return m;
}

gpu_matrix *lumat_check_two_axes(lua_State *L, int arg)
{
    gpu_matrix *m = lumat_check_matrix(L, arg);
    if (m->ndim == 1)
        lumat_raise_argument(L, arg,
                             "is a vector, not a matrix: v:row() and v:col() "
                             "are matrices");
    return m;
}

lumat_request lumat_check_request(lua_State *L, int arg)
{
    lumat_request r = {.ndim = 1, .cols = 1, .device = NULL};
    r.rows = lumat_check_size(L, arg++);
    if (lumat_is_number(L, arg)) {
        r.ndim = 2;
        r.cols = lumat_check_size(L, arg++);
    }
    r.options = arg;
    r.dtype = lumat_option_dtype(L, arg, GPU_ALL_DTYPES);
    if (r.dtype == GPU_ALL_DTYPES)
        r.dtype = lumat_default_dtype(L);
    r.device = lumat_option_device(L, arg, NULL);
    return r;
}

gpu_dtype lumat_option_dtype(lua_State *L, int arg, gpu_dtype otherwise)
{
    gpu_dtype type = otherwise;
    if (!lua_istable(L, arg) || lua_getfield(L, arg, "dtype") == LUA_TNIL)
        return type;
    const char *name = lua_tostring(L, -1);
    if (!name || !gpu_dtype_find(name, &type))
        lumat_raise(L, "dtype: %s is not one of f32, f64, bool, c64, c128",
                    lumat_push_brief(L, -1));
    lua_pop(L, 1);
    return type;
}

gpu_device *lumat_option_device(lua_State *L, int arg, gpu_device *otherwise)
{
    gpu_device *d = otherwise;
    if (!lua_istable(L, arg) || lua_getfield(L, arg, "device") == LUA_TNIL)
        return d;
    const char *name = lua_tostring(L, -1);
    if (!name)
        lumat_raise(L, "device: needs a name: cpu, cuda or cuda:N");
    lumat_try(L, gpu_open(name, &d));
    lua_pop(L, 1);
    return d;
}

const lumat_option lumat_through_options[] = {LUMAT_OPTION_THROUGH,
                                              {NULL, NULL, NULL, NULL}};

/* Adds what the value on top names, and pops that. */
static void add_device(lua_State *L, gpu_team *team)
{
    gpu_device *d;
    if (lua_type(L, -1) != LUA_TSTRING)
        lumat_raise(L, "device: a list has names such as cuda:0, not %s",
                    lumat_push_brief(L, -1));
    lumat_try(L, gpu_open(lua_tostring(L, -1), &d));
    if (gpu_device_is_cpu(d))
        lumat_raise(L, "device: a list is of GPUs, and %s is none",
                    gpu_device_name(d));
    for (int i = 0; i < team->count; i++)
        if (team->devices[i] == d)
            lumat_raise(L, "device: %s stands twice in the list",
                        gpu_device_name(d));
    if (team->count == GPU_MOST_TEAM)
        lumat_raise(L, "device: a list has %d GPUs at most", GPU_MOST_TEAM);
    team->devices[team->count++] = d;
    lua_pop(L, 1);
}

/* Of the list on top. */
static gpu_team check_devices(lua_State *L)
{
    gpu_team team = {0};
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
        add_device(L, &team);
    lua_pop(L, 1);
    if (team.count == 0)
        lumat_raise(L, "device: the list names no GPU: write {\"cuda:0\", "
                       "\"cuda:1\"}");
    return team;
}

static gpu_team option_team(lua_State *L, int arg)
{
    int top = lua_gettop(L);
    gpu_team team = {0};
    if (arg && lua_istable(L, arg) &&
        lua_getfield(L, arg, "device") == LUA_TTABLE)
        team = check_devices(L);
    else
        team.devices[0] = arg ? lumat_option_device(L, arg, NULL) : NULL;
    if (team.devices[0] && team.count == 0)
        team.count = 1;
    lua_settop(L, top);
    return team;
}

gpu_team lumat_option_through(lua_State *L, int arg, const gpu_matrix *m)
{
    gpu_team team = option_team(L, arg);
    gpu_device *own = gpu_matrix_device(m);
    int stays = team.count == 1 && team.devices[0] == own;
    if (team.count == 0 || !own || stays)
        return (gpu_team){0};
    char names[GPU_TEAM_TEXT];
    if (!gpu_device_is_cpu(own))
        lumat_raise(L,
                    "device: the matrix lies on %s, and %s compute%s what lies "
                    "on the CPU: move it, as in A:to(\"cpu\")",
                    gpu_device_name(own), gpu_team_text(&team, names),
                    team.count > 1 ? "" : "s");
    return team;
}

/* 1 or 2, as the row has checked; of a vector 1 alone. */
static int axis_of(lua_State *L, lua_Integer axis, const gpu_matrix *m)
{
    if (axis == 2 && m->ndim == 1)
        lumat_raise(L, "%s: a vector has no axis 2",
                    lumat_running_row(L)->name);
    return (int)axis;
}

int lumat_option_axis(lua_State *L, int arg, const gpu_matrix *m)
{
    int axis = 0;
    if (!lua_istable(L, arg))
        return 0;
    if (lua_getfield(L, arg, "axis") != LUA_TNIL)
        axis = axis_of(L, lumat_check_integer(L, lua_gettop(L)), m);
    lua_pop(L, 1);
    return axis;
}

int lumat_check_axis(lua_State *L, int arg, const gpu_matrix *m)
{
    lua_Integer axis = lumat_optional_integer(L, arg, 1);
    if (axis != 1 && axis != 2)
        lumat_refuse_kind(L, arg);
    return axis_of(L, axis, m);
}

int lumat_arguments(lua_State *L)
{
    int count = lua_gettop(L);
    while (count > 0 && lua_isnil(L, count))
        count--;
    return count;
}

int lumat_holds(gpu_dtype dtype, double whole)
{
    if (dtype == GPU_F32 || dtype == GPU_C64)
        return (float)whole == whole;
    return dtype == GPU_F64 || dtype == GPU_C128 || whole == 0 || whole == 1;
}

int lumat_raise_inexact(lua_State *L, const char *name, const char *what,
                        gpu_dtype dtype)
{
    return lumat_raise(L,
                       "%s: %s is more than %s holds exactly; add "
                       "{dtype=\"f64\"}",
                       name, what, gpu_dtype_name(dtype));
}

void lumat_check_whole(lua_State *L, const char *name, gpu_dtype dtype)
{
    if (dtype == GPU_F32 && lua_isinteger(L, -1) &&
        !lumat_holds(dtype, lua_tonumber(L, -1)))
        lumat_raise_inexact(L, name, lumat_push_brief(L, -1), dtype);
}

double lumat_option_number(lua_State *L, int arg, const char *key,
                           double otherwise)
{
    double value = otherwise;
    if (!lua_istable(L, arg))
        return value;
    int type = lua_getfield(L, arg, key);
    if (type != LUA_TNIL && type != LUA_TNUMBER)
        lumat_raise(L, "%s: needs a number, not a %s", key,
                    lumat_kind_of(L, -1));
    if (type == LUA_TNUMBER)
        value = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return value;
}

gpu_matrix *lumat_option_out(lua_State *L, int arg)
{
    if (!lua_istable(L, arg) || lua_getfield(L, arg, "out") == LUA_TNIL)
        return NULL;
    gpu_matrix *out = lumat_test_matrix(L, -1);
    if (!out || !out->storage)
        lumat_raise(L, "out: needs a matrix, not a %s",
                    out ? "freed one" : lumat_kind_of(L, -1));
    return out;
}

void lumat_count_from_one(lua_State *L, const char *name,
                          const gpu_matrix *places, gpu_matrix *out)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    int one = gpu_program_constant(&p, 1);
    gpu_program_add(&p, GPU_OP_add, 0, one, 0);
    lumat_try(L, gpu_map(name, &p, &places, out));
}
