/* Opening a whole state: the one list of what each room adds to it, the second
 * fence of --safe, the limit of --memory; and closing it. */
#include "complex_value.h"
#include "function.h"
#include "heap.h"
#include "lumat.h"
#include "open.h"
#include "math_functions.h"
#include "pool.h"

#include "lualib.h"
#include <stdio.h>
#include <stdlib.h>

/* --- a whole state -------------------------------------------------------- */

static int open_require(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    return 1;
}

static int open_all(lua_State *L)
{
    const lumat_options *o = lua_touserdata(L, 1);
    luaL_openlibs(L);
    lumat_open_kinds(L);
    lumat_open_input(L);
    if (o->safe != LUMAT_UNSAFE)
        lumat_guard_library(L);
    lumat_open_warnings(L);
    lumat_set_default_dtype(GPU_F32);
    lumat_open_library(L);
    lumat_open_rows(L);
    lumat_open_matrix(L);
    lumat_open_complex(L);
    lumat_open_unknown(L);
    lumat_open_sparse(L);
    lumat_open_format(L);
    lumat_open_unit_text(L);
    lumat_open_cells(L);
    lumat_open_settings(L);
    lumat_open_make(L);
    lumat_open_index(L);
    lumat_open_ops(L);
    lumat_open_product(L);
    lumat_open_complex_functions(L);
    lumat_open_shape(L);
    lumat_open_arrange(L);
    lumat_open_sparse_functions(L);
    lumat_open_files(L);
    lumat_open_working_folder(L);
    lumat_open_system(L);
    lumat_open_help(L);
    lumat_open_rate(L);
    lumat_open_screens(L);
    lumat_open_parts(L);
    lumat_open_texts(L);
    lumat_open_journal(L);
    lumat_open_links(L);
    lumat_open_mesh(L);
    lumat_open_npy_parts(L);
    lumat_open_block_cyclic(L);
    lumat_open_worker_path(L);
    lumat_open_serving(L);
    lumat_open_trace(L);
    lumat_open_stopwatch(L);
    lumat_open_profile(L);
    lumat_open_lineage(L);
    lumat_open_transcript(L);
    lumat_open_variables(L);
    lumat_open_dry_run(L);
    lumat_open_heat(L);
    lumat_open_canvas(L);
    lumat_open_histogram(L);
    lumat_open_inspect(L);
    lumat_open_watch(L);
    lumat_open_completions(L);
    lumat_open_rescue(L);
    lumat_open_std(L);
    if (!o->bytecode)
        lumat_refuse_bytecode(L);
    lumat_close_library(L);
    lumat_join_load(L);
    lumat_copy_globals(L, "lumat.environment");
    lumat_copy_libraries(L, "lumat.environment");
    if (o->safe != LUMAT_UNSAFE)
        lumat_make_safe(L);
    lumat_copy_globals(L, "lumat.base");
    lumat_open_session(L);
    lumat_open_reads(L, o->strict);
    if (o->strict)
        lumat_make_strict(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, open_require);
    lua_setfield(L, -2, "lumat");
    lumat_open_faults(L);
    return 0;
}

int lumat_fence(const lumat_options *options, char *why, size_t size)
{
    return lumat_raise_fence(options, why, size) == 0;
}

/* The second fence leaves no way to a device, so that has to be open. One that
 * cannot be is told of when it is asked for. */
static int fence_in(lua_State *L, char *why, size_t size)
{
    gpu_device *d;
    if (!lumat_is_safe())
        return 1;
    lua_pushboolean(L, gpu_default(&d) == GPU_OK);
    lua_pop(L, 1);
    return lumat_close_fence(why, size) == 0;
}

/* --- --memory ------------------------------------------------------------- */

static void limit_memory(size_t most)
{
    lumat_limit_heap(most, gpu_host_live);
    gpu_limit_memory(most, lumat_heap_used);
}

lua_State *lumat_open(const lumat_options *options, char *why, size_t size,
                      int *code)
{
    lua_State *L = lumat_new_state();
    *code = 4;
    snprintf(why, size, "not enough memory");
    if (!L)
        return NULL;
    if (options->device)
        gpu_set_default(options->device);
    if (options->memory > 0)
        limit_memory(options->memory);
    lua_pushcfunction(L, open_all);
    lua_pushlightuserdata(L, (void *)options);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK) {
        *code = 1;
        if (fence_in(L, why, size))
            return L;
    } else {
        *code = lumat_exit_code(L, -1);
        snprintf(why, size, "%s", lua_tostring(L, -1));
    }
    lua_close(L);
    return NULL;
}

void lumat_close(lua_State *L)
{
    lua_close(L);
    lumat_close_stopping();
    gpu_on_memory_short(NULL, NULL);
    gpu_shutdown();
}
