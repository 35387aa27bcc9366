/* The values that strings can have: devices, element types, kernels, topics
 * of the help, and what the help lists behind an option. */
#include "offer_list.h"

#include <string.h>

static void offer(const lumat_values *v, const char *value, size_t length,
                  const char *note)
{
    lua_State *L = v->gather->L;
    lua_pushstring(L, v->quote);
    lua_pushlstring(L, value, length);
    lua_pushstring(L, v->quote);
    lua_concat(L, 3);
    size_t n;
    const char *text = lua_tolstring(L, -1, &n);
    lumat_gather_copy(v->gather, text, n, note);
    lua_pop(L, 1);
}

static void offer_text(const lumat_values *v, const char *value,
                       const char *note)
{
    offer(v, value, strlen(value), note);
}

/* --- devices and kernels -------------------------------------------------- */

static void offer_devices(const lumat_values *v)
{
    offer_text(v, "cpu", NULL);
    offer_text(v, "cuda", NULL);
    for (int i = 0, count = gpu_count_known(); i < count; i++) {
        const char *name = lua_pushfstring(v->gather->L, "cuda:%d", i);
        offer_text(v, name, NULL);
        lua_pop(v->gather->L, 1);
    }
}

static void offer_dtypes(const lumat_values *v)
{
    offer_text(v, gpu_dtype_name(GPU_F32), NULL);
    offer_text(v, gpu_dtype_name(GPU_F64), NULL);
    offer_text(v, gpu_dtype_name(GPU_BOOL), NULL);
}

/* Kernels or operations of a device. */
static void offer_of_device(const lumat_values *v, gpu_device *d, int kernels)
{
    gpu_kernel_info k;
    int is_operation =
        strcmp(v->function, "dot") == 0 || strcmp(v->function, "matmul") == 0;
    for (int i = 0; i < gpu_kernel_count(d); i++) {
        gpu_kernel_describe(d, i, &k);
        if (!kernels)
            offer_text(v, k.operation, NULL);
        else if (!is_operation || strcmp(k.operation, v->function) == 0)
            offer_text(v, k.name, k.idea);
    }
}

/* Of the operand's device, or of those that are open by now. */
static void offer_ladder(const lumat_values *v, int kernels)
{
    gpu_device *const *devices;
    int count = gpu_device_count_ready(&devices);
    for (int i = 0; i < count; i++)
        if (!v->device || v->device == devices[i])
            offer_of_device(v, devices[i], kernels);
}

/* --- topics --------------------------------------------------------------- */

/* Pushes the first sentence of a text. */
static const char *push_sentence(lua_State *L, const char *text)
{
    const char *end = strstr(text, ". ");
    size_t length = end ? (size_t)(end - text) : strlen(text);
    if (length > 0 && text[length - 1] == '.')
        length--;
    return lua_pushlstring(L, text, length);
}

static void offer_topics(const lumat_values *v)
{
    lua_State *L = v->gather->L;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.help");
    int help = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, help); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_istable(L, -1))
            continue;
        lua_pushliteral(L, "help");
        lua_rawget(L, -2);
        const char *text = lua_tostring(L, -1);
        push_sentence(L, text ? text : "");
        const char *note = lumat_keep(v->gather);
        lua_pop(L, 1);
        offer_text(v, lua_tostring(L, -2), note);
    }
    lua_settop(L, help - 1);
}

/* --- kinds and options ---------------------------------------------------- */

int lumat_gather_kind(const lumat_values *v, lumat_piece kind)
{
    if (*kind.start == '"')
        offer(v, kind.start + 1, kind.length - 2, NULL);
    else if (lumat_is_piece(kind, "boolean") && *v->quote)
        lumat_gather_words(v->gather, "true false"); /* stand without quotes */
    else if (lumat_is_piece(kind, "device"))
        offer_devices(v);
    else if (lumat_is_piece(kind, "dtype"))
        offer_dtypes(v);
    else if (lumat_is_piece(kind, "operation"))
        offer_ladder(v, 0);
    else if (lumat_is_piece(kind, "topic"))
        offer_topics(v);
    else if (!lumat_is_piece(kind, "kernel"))
        return 0;
    else {
        offer_text(v, "auto", "what is fastest as a rule");
        offer_ladder(v, 1);
    }
    return 1;
}

int lumat_gather_option(const lumat_values *v, const lumat_option *option)
{
    lumat_piece rest = {option->kind, strlen(option->kind)}, kind;
    int found = 0;
    while (lumat_next_kind(&rest, &kind))
        found |= lumat_gather_kind(v, kind);
    return found;
}
