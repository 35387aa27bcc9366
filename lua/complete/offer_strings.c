/* What may stand in quotes: a file's name, or a word that a function or an
 * option takes there. */
#include "cursor_context.h"

#include <string.h>

/* What of Lua's own takes a file's name. */
static const struct {
    const char *function, *files;
} lua_files[] = {{"dofile", ".lua"}, {"loadfile", ".lua"}};

/* The kinds of arguments that are files, and how their names end. */
static const struct {
    const char *kind, *files;
} file_kinds[] = {
    {"data", ".csv .tsv .txt .npy"}, {"script", ".lua"}, {"session", ".lum"},
    {"picture", ".png .svg .pdf"},   {"path", ""},       {"folder", ""}};

static const char *files_of(lumat_piece kind)
{
    for (size_t i = 0; i < sizeof file_kinds / sizeof *file_kinds; i++)
        if (lumat_is_piece(kind, file_kinds[i].kind))
            return file_kinds[i].files;
    return NULL;
}

/* What the row says may stand there; nothing where it names no words. */
static void offer_by_row(lumat_query *q, const lumat_calling *call)
{
    enum { MOST = 8 };
    lumat_piece kinds[MOST], kind;
    lumat_values v = {&q->gather, call->name, NULL, ""};
    int count = lumat_argument_kinds(q->L, call, kinds, MOST);
    for (int i = 0; i < count; i++)
        while (lumat_next_kind(&kinds[i], &kind)) {
            lumat_gather_kind(&v, kind);
            const char *files = files_of(kind);
            q->place.files = files ? files : q->place.files;
        }
}

static void offer_argument(lumat_query *q, const lumat_calling *call)
{
    q->place.files = NULL;
    if (call->is_library) {
        offer_by_row(q, call);
        return;
    }
    if (strcmp(call->name, "require") == 0) {
        lumat_gather_modules(&q->gather);
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
    lumat_values v = {&q->gather, "", NULL, ""};
    if (lumat_kind_at(t, q->at - 1) != LUMAT_COMPARE ||
        lumat_kind_at(t, q->at - 3) != '.')
        return 0;
    if (lumat_at(t, q->at - 2, "dtype"))
        lumat_gather_words(&q->gather, "f32 f64 bool");
    else if (lumat_at(t, q->at - 2, "device"))
        lumat_gather_kind(&v, (lumat_piece){"device", 6});
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
    if (offer_compared(q) || lumat_offer_options(q)) {
        q->place.files = NULL;
        return;
    }
    if (before == '(' || before == ',')
        found = t->innermost >= 0 && t->list[t->innermost].kind == '(' &&
                lumat_find_call(q->L, t, t->innermost, q->at, &call);
    else
        found = lumat_find_call(q->L, t, q->at, q->at, &call);
    if (found)
        offer_argument(q, &call);
}
