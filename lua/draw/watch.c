/* watch: a heat map of a matrix that is drawn anew while an entry changes it.
 *
 * There is no hook: whatever computes passes lumat_try, which looks here when
 * something is watched. What runs then has to be as harmless as lumat_try: it
 * takes no memory from Lua, runs no code of the user's and raises nothing. */
#include "draw.h"
#include "function.h"
#include "value.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "picture.h"
#include "print.h"
#include "scope.h"

enum { OTHER_LINES = 12 };         /* of lumat_picture_lines, and the legend */
static const double pause = 0.125; /* seconds between two pictures */

static const char
    WATCHED; /* its address: a name or a matrix, in the registry */

static struct {
    lumat_draw_fn *draw; /* NULL: no entry runs, or nobody can show it */
    void *data;
    lumat_style style;
    double drawn; /* when, last */
    int is_drawing;
} watch;

/* --- what is watched ------------------------------------------------------ */

/* Pushes the watched value, or something that is no matrix. */
static void push_watched(lua_State *L)
{
    size_t length;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &WATCHED);
    const char *name = lua_tolstring(L, -1, &length);
    if (name)
        lumat_push_variable(L, name, length);
}

/* --- drawing -------------------------------------------------------------- */

/* The least and most of the lines a watched picture may have. */
static lumat_style half_a_screen(const lumat_style *full)
{
    lumat_style s = *full;
    s.height = full->height / 2 + OTHER_LINES / 2;
    return s;
}

static gpu_status dense_means(const gpu_matrix *m, const lumat_frame *f,
                              double *values)
{
    gpu_matrix blocks;
    gpu_status status =
        gpu_blocks(m, GPU_BLOCK_MEAN, f->rows, f->cols, &blocks);
    if (status != GPU_OK)
        return status;
    status = gpu_download(&blocks, values);
    gpu_release(&blocks);
    return status;
}

static gpu_status sparse_means(const gpu_sparse *s, const lumat_frame *f,
                               double *values)
{
    int64_t *counts = malloc((size_t)(f->rows * f->cols) * sizeof *counts);
    gpu_status status =
        counts ? gpu_sparse_blocks(s, f->rows, f->cols, counts, values)
               : GPU_MEMORY;
    free(counts);
    return status;
}

/* The matrix, a vector as a row, or one whose storage is NULL. */
static gpu_matrix rows_of(const gpu_matrix *m)
{
    gpu_matrix r = {.storage = NULL};
    if (!m || !m->storage || gpu_size(m) == 0)
        return r;
    return lumat_as_rows(m);
}

/* Draws and shows it; what cannot be had is not drawn. */
static void draw_means(const lumat_frame *f, const gpu_matrix *m,
                       const gpu_sparse *s)
{
    double low, high;
    size_t room = lumat_heat_room(f);
    double *values = malloc((size_t)(f->rows * f->cols) * sizeof *values);
    lumat_text t = {malloc(room), 0, room};
    gpu_status status = !values || !t.at ? GPU_MEMORY
                        : s              ? sparse_means(s, f, values)
                                         : dense_means(m, f, values);
    if (status == GPU_OK) {
        t.at[0] = '\0';
        lumat_heat_range(f, values, &low, &high);
        lumat_draw_heat(&t, &watch.style, f, values, low, high);
        watch.draw(watch.data, t.at);
    }
    free(values);
    free(t.at);
}

static void draw_value(lua_State *L, int index)
{
    lumat_frame f;
    gpu_matrix m = rows_of(lumat_test_matrix(L, index));
    const gpu_sparse *s = lumat_test_sparse(L, index);
    const lumat_style *style = &watch.style;
    int is_sparse = s && s->values.storage && s->rows > 0 && s->cols > 0;
    if (!m.storage && !is_sparse)
        return;
    int64_t rows = is_sparse ? s->rows : m.rows;
    lumat_frame_fit(&f, rows, is_sparse ? s->cols : m.cols,
                    style->width - lumat_digits(rows) - 2,
                    lumat_picture_lines(style), lumat_heat_dots(style), 1);
    draw_means(&f, &m, is_sparse ? s : NULL);
}

static void tick(lua_State *L)
{
    if (watch.is_drawing || !watch.draw)
        return;
    double time = gpu_now();
    if (time - watch.drawn < pause || !lua_checkstack(L, LUA_MINSTACK))
        return;
    int top = lua_gettop(L);
    watch.is_drawing = 1;
    push_watched(L);
    draw_value(L, lua_gettop(L));
    lua_settop(L, top);
    watch.is_drawing = 0;
    watch.drawn = gpu_now(); /* a slow picture has its pause, too */
}

/* --- for the terminal ----------------------------------------------------- */

void lumat_watch_start(lua_State *L, const lumat_style *style,
                       lumat_draw_fn *draw, void *data)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &WATCHED);
    lumat_after_success = lua_isnil(L, -1) ? NULL : tick;
    lua_pop(L, 1);
    watch.draw = draw;
    watch.data = data;
    watch.style = half_a_screen(style);
    watch.drawn = gpu_now();
}

void lumat_watch_end(void)
{
    watch.draw = NULL;
    lumat_after_success = NULL;
}

/* --- the function --------------------------------------------------------- */

/* Pushes the name of what is watched, "a matrix" for one that has none, or
 * nil. */
static void push_name(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &WATCHED);
    if (lua_isuserdata(L, -1)) {
        lua_pop(L, 1);
        lua_pushliteral(L, "a matrix");
    }
}

/* Leaves at 1 what to remember of it. */
static void take_watched(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TSTRING || !lua_toboolean(L, 1))
        return;
    lumat_refuse_kind(L, 1);
    const char *name = lumat_name_of(L, 1, "");
    if (*name) {
        lua_pushstring(L, name);
        lua_replace(L, 1);
    }
}

/* watch([A]) */
static int watch_value(lua_State *L)
{
    if (lua_gettop(L) > 0) {
        lua_settop(L, 1);
        take_watched(L);
        if (!lua_toboolean(L, 1)) {
            lua_pushnil(L);
            lua_replace(L, 1);
        }
        lua_settop(L, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &WATCHED);
        lumat_after_success = watch.draw != NULL ? tick : NULL;
    }
    push_name(L);
    return 1;
}

static const lumat_function functions[] = {
    {"watch", watch_value, 1, "[A: matrix|sparse|variable|false]", "string",
     "Watches a matrix, or the variable of a name, which may come to be later: "
     "while entries at the prompt run, a heat map of it is drawn anew. "
     "watch(false) ends it; watch() gives the name. Also :watch A.",
     "watch(false)", "nil", .group = "watching"},
    {0}};

void lumat_open_watch(lua_State *L)
{
    lumat_register(L, functions);
}
