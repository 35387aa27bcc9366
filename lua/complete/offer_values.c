/* Values: what the row of a function says that its arguments and options may
 * be (devices, kernels, topics of the help, files, words of their own), the
 * names of options, and the modules that require would find. */
#include "complete_parts.h"
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- a kind of value ------------------------------------------------------ */

typedef struct values {
    lumat_gather *gather;
    const char *function;     /* whose kernels, if it has any of its own */
    const gpu_device *device; /* where they run; NULL: on any that is open */
    const char *quote;        /* put around them; "" inside quotes */
    int columns; /* index of a table of what is called; 0: it is no frame */
} values;

static void offer_quoted(const values *v, const char *value, size_t length,
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

static void offer_text(const values *v, const char *value, const char *note)
{
    offer_quoted(v, value, strlen(value), note);
}

static void offer_devices(const values *v)
{
    offer_text(v, "cpu", NULL);
    offer_text(v, "cuda", NULL);
    for (int i = 0, count = gpu_count_known(); i < count; i++) {
        const char *name = lua_pushfstring(v->gather->L, "cuda:%d", i);
        offer_text(v, name, NULL);
        lua_pop(v->gather->L, 1);
    }
}

static void offer_dtypes(const values *v)
{
    offer_text(v, gpu_dtype_name(GPU_F32), NULL);
    offer_text(v, gpu_dtype_name(GPU_F64), NULL);
    offer_text(v, gpu_dtype_name(GPU_BOOL), NULL);
    offer_text(v, gpu_dtype_name(GPU_C64), NULL);
    offer_text(v, gpu_dtype_name(GPU_C128), NULL);
}

/* Is it one of those that kernels are of? */
static int has_kernels(const char *function)
{
    static const char *const all[] = {"dot", "matmul", "lu", "chol", "qr"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(function, all[i]) == 0)
            return 1;
    return 0;
}

/* Kernels or operations of a device. */
static void offer_of_device(const values *v, gpu_device *d, int kernels)
{
    gpu_kernel_info k;
    int is_operation = has_kernels(v->function);
    for (int i = 0; i < gpu_kernel_count(d); i++) {
        gpu_kernel_describe(d, i, &k);
        if (!kernels)
            offer_text(v, k.operation, NULL);
        else if (!is_operation || strcmp(k.operation, v->function) == 0)
            offer_text(v, k.name, k.idea);
    }
}

/* Of the operand's device, or of those that are open by now. */
static void offer_ladder(const values *v, int kernels)
{
    gpu_device *const *devices;
    int count = gpu_device_count_ready(&devices);
    for (int i = 0; i < count; i++)
        if (!v->device || v->device == devices[i])
            offer_of_device(v, devices[i], kernels);
}

/* Pushes the first sentence of a text. */
static const char *push_sentence(lua_State *L, const char *text)
{
    const char *end = strstr(text, ". ");
    size_t length = end ? (size_t)(end - text) : strlen(text);
    if (length > 0 && text[length - 1] == '.')
        length--;
    return lua_pushlstring(L, text, length);
}

static void offer_topics(const values *v)
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

static int is_columns(lumat_piece kind)
{
    return lumat_is_piece(kind, "column") || lumat_is_piece(kind, "columns");
}

/* Offers the values of a kind: a string in quotes, device, dtype, kernel,
 * operation, topic; outside of quotes also true and false. Returns 0 for a kind
 * that has none. */
static int offer_kind(const values *v, lumat_piece kind)
{
    if (*kind.start == '"')
        offer_quoted(v, kind.start + 1, kind.length - 2, NULL);
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
    else if (is_columns(kind))
        lumat_gather_keys(v->gather, v->columns);
    else if (!lumat_is_piece(kind, "kernel"))
        return 0;
    else {
        offer_text(v, "auto", "what is fastest as a rule");
        offer_ladder(v, 1);
    }
    return 1;
}

/* The same of a kind by its name. */
static int offer_of_kind(const values *v, const char *kind)
{
    return offer_kind(v, (lumat_piece){kind, strlen(kind)});
}

int lumat_offer_wanted(lumat_query *q)
{
    values v = {&q->gather, "", NULL, "", 0};
    int before = lumat_kind_at(&q->tokens, q->at - 1);
    if (q->wanted == LUMAT_DEVICES)
        return offer_of_kind(&v, "device");
    if (q->wanted == LUMAT_TOPICS)
        return offer_of_kind(&v, "topic");
    if (q->wanted == LUMAT_KERNELS && before == '(')
        offer_of_kind(&v, "kernel");
    return 0;
}

/* Pushes the columns of the frame that the method is called of, or nil. */
static void push_callee_columns(lumat_query *q, const lumat_calling *call)
{
    if (call->is_method)
        lumat_push_chain(q->L, &q->tokens, call->callee, call->open - 2);
    else
        lua_pushnil(q->L);
    lumat_push_columns(q->L);
    lua_remove(q->L, -2);
}

/* --- options -------------------------------------------------------------- */

/* Offers the values that an option may have. */
static int offer_of_option(const values *v, const lumat_option *option)
{
    lumat_piece rest = {option->kind, strlen(option->kind)}, kind;
    int found = 0;
    while (lumat_next_kind(&rest, &kind))
        found |= offer_kind(v, kind);
    return found;
}

/* The table of options that the cursor is in. */
typedef struct reading {
    lumat_query *q;
    const lumat_calling *call;
    int table; /* the token that opens it */
    int key;   /* the one before the = before the word */
    int count; /* options whose names or values may stand there */
} reading;

static int is_name_of(const lumat_tokens *t, int i, const lumat_option *option)
{
    return lumat_is_written(t, i, option->name, strlen(option->name));
}

/* Whether the table has the option already. */
static int is_given(const reading *r, const lumat_option *option)
{
    const lumat_tokens *t = &r->q->tokens;
    for (int i = r->table + 1; i + 1 < t->count; i++) {
        if (t->list[i].match > i)
            i = t->list[i].match;
        else if (t->list[i + 1].kind == '=' && is_name_of(t, i, option))
            return 1;
    }
    return 0;
}

static void offer_option_name(void *data, const lumat_option *option)
{
    reading *r = data;
    lua_State *L = r->q->L;
    r->count++;
    if (is_given(r, option))
        return;
    const char *text = lua_pushfstring(L, "%s=", option->name);
    lumat_gather_copy(&r->q->gather, text, strlen(text), NULL);
    lua_pop(L, 1);
}

/* Matrices for out; what the help lists; else any variable. */
static void offer_option_value(void *data, const lumat_option *option)
{
    reading *r = data;
    lumat_query *q = r->q;
    char quote[2] = {q->place.quote ? '\0' : '"', '\0'};
    lumat_fact fact = {.kind = LUMAT_IS_UNKNOWN};
    if (!is_name_of(&q->tokens, r->key, option))
        return;
    r->count++;
    if (r->call->argument > 1)
        fact = lumat_argument_fact(q->L, &q->tokens, r->call,
                                   r->call->argument - 1);
    push_callee_columns(q, r->call);
    values v = {&q->gather, r->call->name, fact.device, quote,
                q->place.quote ? lua_gettop(q->L) : 0};
    int listed = offer_of_option(&v, option);
    lua_pop(q->L, 1);
    if (q->place.quote || (listed && q->gather.length == 0))
        return;
    if (strcmp(option->kind, "matrix") == 0)
        q->wanted = LUMAT_MATRICES;
    lumat_offer_variables(q, NULL);
}

/* Is what is called used as "name{field=, …}"? */
static int takes_fields(const lumat_calling *call)
{
    lumat_argument a = {.rest = call->row->takes};
    while (lumat_next_argument(&a))
        if (a.is == LUMAT_ARGUMENT_OPTIONS && a.place == call->argument)
            return 1;
    return 0;
}

/* The call of which the table is an argument, behind what it works on, or the
 * only one. */
static int find_options(lumat_query *q, int table, lumat_calling *call)
{
    const lumat_tokens *t = &q->tokens;
    int before = lumat_kind_at(t, table - 1);
    int open = before == ',' || before == '(' ? t->list[table].match : table;
    if (lumat_kind_at(t, table) != '{' ||
        !lumat_find_call(q->L, t, open, table, call) || !call->row)
        return 0;
    return call->argument > 1 ? open != table || call->is_method
                              : takes_fields(call);
}

int lumat_offer_options(lumat_query *q)
{
    const lumat_tokens *t = &q->tokens;
    lumat_calling call;
    reading r = {.q = q, .call = &call, .table = t->innermost};
    int before = lumat_kind_at(t, q->at - 1);
    int is_value = before == '=', first = is_value ? q->at - 3 : q->at - 1;
    int kind = lumat_kind_at(t, first);
    if (kind != ',' && kind != ';' && (kind != '{' || first != r.table))
        return 0;
    if (!find_options(q, r.table, &call))
        return 0;
    r.key = q->at - 2;
    lumat_each_option(call.row,
                      is_value ? offer_option_value : offer_option_name, &r);
    return r.count > 0;
}

/* --- modules -------------------------------------------------------------- */

static void offer_loaded(lumat_gather *g, const char *field)
{
    lua_State *L = g->L;
    int top = lua_gettop(L);
    lua_getfield(L, LUA_REGISTRYINDEX, field);
    for (lua_pushnil(L); lua_istable(L, top + 1) && lua_next(L, top + 1);
         lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            lumat_gather_copy(g, lua_tostring(L, -2), lua_rawlen(L, -2), NULL);
    lua_settop(L, top);
}

enum { LONGEST = 512 };

/* A template such as "/usr/share/lua/?/init.lua", cut at its mark, with what
 * was typed up to its last dot in between. */
typedef struct path_template {
    char folder[LONGEST];
    const char *rest; /* ".lua", "/init.lua" */
    size_t rest_length;
} path_template;

static int is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The entry as a module's name without the typed part before its last dot;
 * its length, or 0 when it is none. */
static size_t module_length(const path_template *p, const char *entry)
{
    char path[2 * LONGEST];
    size_t n = strlen(entry), rest = p->rest_length;
    struct stat s;
    if (p->rest[0] != '/') {
        int ends = n > rest && memcmp(entry + n - rest, p->rest, rest) == 0;
        return ends && !memchr(entry, '.', n - rest) ? n - rest : 0;
    }
    if (strchr(entry, '.'))
        return 0;
    snprintf(path, sizeof path, "%s%s%.*s", p->folder, entry,
             (int)p->rest_length, p->rest);
    return stat(path, &s) == 0 ? n : 0;
}

static void offer_entry(lumat_gather *g, const path_template *p, size_t typed,
                        const char *entry)
{
    char path[2 * LONGEST];
    size_t n = module_length(p, entry);
    lua_State *L = g->L;
    snprintf(path, sizeof path, "%s%s", p->folder, entry);
    int is_prefix =
        n == 0 && p->rest[0] != '/' && !strchr(entry, '.') && is_folder(path);
    if (n == 0 && !is_prefix)
        return;
    lua_pushlstring(L, g->prefix, typed);
    lua_pushlstring(L, entry, n > 0 ? n : strlen(entry));
    lua_pushstring(L, is_prefix ? "." : "");
    lua_concat(L, 3);
    lumat_gather_copy(g, lua_tostring(L, -1), lua_rawlen(L, -1), NULL);
    lua_pop(L, 1);
}

/* Closes the folder on top. */
static int close_folder(lua_State *L)
{
    DIR **folder = lua_touserdata(L, -1);
    if (*folder)
        closedir(*folder);
    *folder = NULL;
    return 0;
}

/* The collector closes it if an error comes between. */
static DIR **push_folder(lua_State *L, const char *path)
{
    DIR **folder = lua_newuserdatauv(L, sizeof *folder, 0);
    *folder = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_folder);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *folder = opendir(path);
    return folder;
}

/* Pushes a table of the names in a folder, and returns how many: none of a
 * folder that cannot be read to its end, as what is offered has to be all. */
static int push_entries(lua_State *L, const char *path)
{
    int count = 0;
    lua_newtable(L);
    DIR **folder = push_folder(L, path);
    struct dirent *entry = NULL;
    do {
        errno = 0;
        entry = *folder ? readdir(*folder) : NULL;
        if (entry) {
            lua_pushstring(L, entry->d_name);
            lua_rawseti(L, -3, ++count);
        }
    } while (entry);
    count = errno ? 0 : count;
    close_folder(L);
    lua_pop(L, 1);
    return count;
}

static void read_template(lumat_gather *g, const char *text, size_t length,
                          size_t typed)
{
    const char *mark = memchr(text, '?', length);
    if (!mark || (size_t)(mark - text) + typed >= LONGEST)
        return;
    path_template p = {.rest = mark + 1,
                       .rest_length = length - (size_t)(mark + 1 - text)};
    snprintf(p.folder, sizeof p.folder, "%.*s%.*s", (int)(mark - text), text,
             (int)typed, g->prefix);
    for (char *c = p.folder + (mark - text); *c; c++)
        *c = *c == '.' ? '/' : *c;
    lua_State *L = g->L;
    int entries = push_entries(L, *p.folder ? p.folder : ".");
    for (int i = 1; i <= entries; i++) {
        lua_rawgeti(L, -1, i);
        offer_entry(g, &p, typed, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Reads the templates of a field of the table `package`, which is on top. */
static void read_path(lumat_gather *g, const char *field, size_t typed)
{
    lua_State *L = g->L;
    lua_pushstring(L, field);
    lua_rawget(L, -2);
    if (lua_type(L, -1) == LUA_TSTRING) {
        const char *path = lua_tostring(L, -1);
        for (size_t n; *path; path += n + (path[n] == ';')) {
            n = strcspn(path, ";");
            read_template(g, path, n, typed);
        }
    }
    lua_pop(L, 1);
}

/* Offers modules that are loaded or have a loader, and those that are files on
 * package.path and package.cpath. */
static void offer_modules(lumat_gather *g)
{
    lua_State *L = g->L;
    int top = lua_gettop(L);
    size_t typed = g->length;
    while (typed > 0 && g->prefix[typed - 1] != '.')
        typed--;
    offer_loaded(g, LUA_LOADED_TABLE);
    offer_loaded(g, LUA_PRELOAD_TABLE);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushliteral(L, "package");
    if (lua_istable(L, -2) && lua_rawget(L, -2) == LUA_TTABLE) {
        read_path(g, "path", typed);
        read_path(g, "cpath", typed);
    }
    lua_settop(L, top);
}

/* --- in quotes ------------------------------------------------------------ */

/* What of Lua's own takes a file's name. */
static const struct {
    const char *function, *files;
} lua_files[] = {{"dofile", ".lua"}, {"loadfile", ".lua"}};

/* The kinds of arguments that are files, and how their names end. */
static const struct {
    const char *kind, *files;
} file_kinds[] = {{"script", ".lua"},
                  {"session", ".lum"},
                  {"picture", ".png .svg .pdf"},
                  {"path", ""},
                  {"folder", ""}};

static const char *files_of(lumat_piece kind)
{
    for (size_t i = 0; i < sizeof file_kinds / sizeof *file_kinds; i++)
        if (lumat_is_piece(kind, file_kinds[i].kind))
            return file_kinds[i].files;
    return lumat_is_piece(kind, "data") ? lumat_data_endings() : NULL;
}

/* What the row says may stand there, in any form of the call; nothing where it
 * names no words. */
static void offer_by_row(lumat_query *q, const lumat_calling *call, int columns)
{
    values v = {&q->gather, call->name, NULL, "", columns};
    lumat_argument a = {.rest = call->row->takes};
    lumat_piece kind;
    while (lumat_next_argument(&a)) {
        if (a.is != LUMAT_ARGUMENT || a.place != call->argument)
            continue;
        while (lumat_next_kind(&a.kind, &kind)) {
            const char *files = files_of(kind);
            offer_kind(&v, kind);
            q->place.files = files ? files : q->place.files;
        }
    }
}

/* Whether the cursor is in a list of names of columns: T:select{"a", ". If so,
 * offers them. */
static int offer_listed_column(lumat_query *q)
{
    const lumat_tokens *t = &q->tokens;
    lumat_calling call;
    int table = t->innermost, is_list = 0;
    if (table < 0 || lumat_kind_at(t, table) != '{')
        return 0;
    int before = lumat_kind_at(t, table - 1);
    int open = before == ',' || before == '(' ? t->list[table].match : table;
    if (!lumat_find_call(q->L, t, open, table, &call) || !call.row)
        return 0;
    lumat_argument a = {.rest = call.row->takes};
    while (lumat_next_argument(&a))
        is_list |= a.is == LUMAT_ARGUMENT && a.place == call.argument &&
                   lumat_is_piece(a.kind, "columns");
    if (!is_list)
        return 0;
    push_callee_columns(q, &call);
    lumat_gather_keys(&q->gather, lua_gettop(q->L));
    lua_pop(q->L, 1);
    return 1;
}

static void offer_argument(lumat_query *q, const lumat_calling *call)
{
    q->place.files = NULL;
    if (call->row) {
        push_callee_columns(q, call);
        offer_by_row(q, call, lua_gettop(q->L));
        lua_pop(q->L, 1);
        return;
    }
    if (strcmp(call->name, "require") == 0) {
        offer_modules(&q->gather);
        return;
    }
    q->place.files = "";
    for (size_t i = 0; i < sizeof lua_files / sizeof *lua_files; i++)
        if (strcmp(lua_files[i].function, call->name) == 0)
            q->place.files = lua_files[i].files;
}

/* A.dtype == "…", A.device == "…" */
static int offer_compared(lumat_query *q)
{
    const lumat_tokens *t = &q->tokens;
    values v = {&q->gather, "", NULL, "", 0};
    if (lumat_kind_at(t, q->at - 1) != LUMAT_COMPARE ||
        lumat_kind_at(t, q->at - 3) != '.')
        return 0;
    if (lumat_at(t, q->at - 2, "dtype"))
        offer_of_kind(&v, "dtype");
    else if (lumat_at(t, q->at - 2, "device"))
        offer_of_kind(&v, "device");
    else
        return 0;
    return 1;
}

void lumat_offer_in_string(lumat_query *q)
{
    const lumat_tokens *t = &q->tokens;
    lumat_calling call;
    int before = lumat_kind_at(t, q->at - 1), found = 0;
    q->place.files = "";
    if (before == '[' && lumat_chain_start(t, q->at - 1) < q->at - 1) {
        q->place.files = NULL;
        if (!lumat_offer_index(q))
            lumat_offer_keys(q);
        return;
    }
    if (offer_listed_column(q) || offer_compared(q) || lumat_offer_options(q)) {
        q->place.files = NULL;
        return;
    }
    if (before == '(' || before == ',')
        found = lumat_find_call_around(q, &call);
    else
        found = lumat_find_call(q->L, t, q->at, q->at, &call);
    if (found)
        offer_argument(q, &call);
}
