/* What may stand in quotes: a file's name, or a word that a function or an
 * option takes there. */
#include "cursor_context.h"

#include <string.h>

#define DATA ".csv .tsv .txt .npy"

/* What takes a file, a module, or the name of what it is called after. */
static const struct rule {
    const char *function, *kind, *files;
} rules[] = {
    {"load", NULL, DATA},           {"save", NULL, DATA},
    {"dofile", NULL, ".lua"},       {"loadfile", NULL, ".lua"},
    {"load_session", NULL, ".lum"}, {"save_session", NULL, ".lum"},
    {"require", "module", ""},      {"device", "device", NULL},
    {"help", "topic", NULL},        {"default_dtype", "dtype", NULL},
    {"kernels", "kernel", NULL},
};

static const struct rule *rule_of(const lumat_calling *call)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].function, call->name) == 0)
            return &rules[i];
    return NULL;
}

/* The words by which the usage calls the argument, such as device. */
static int offer_words(lumat_query *q, const lumat_values *v,
                       const lumat_calling *call)
{
    char words[64];
    int found = 0;
    lumat_argument_words(q->L, call, words, sizeof words);
    if (strstr(words, " path "))
        return 0;
    for (const char *p = words + 1; *p;) {
        size_t n = strcspn(p, " ");
        found |= lumat_gather_kind(v, p, n);
        p += n + strspn(p + n, " ");
    }
    return found || call->is_library;
}

static void offer_argument(lumat_query *q, const lumat_calling *call)
{
    const struct rule *rule = rule_of(call);
    lumat_values v = {&q->gather, call->name, NULL, ""};
    q->place.files = NULL;
    if (call->is_library && offer_words(q, &v, call) &&
        (!rule || !rule->kind || call->argument > 1))
        return;
    if (rule && rule->kind && strcmp(rule->kind, "module") == 0)
        lumat_gather_modules(&q->gather);
    else if (rule && rule->kind)
        lumat_gather_kind(&v, rule->kind, strlen(rule->kind));
    else
        q->place.files = rule ? rule->files : "";
}

/* A.dtype == "…", A.device == "…" */
static int offer_compared(lumat_query *q)
{
    const lumat_lexemes *t = &q->tokens;
    lumat_values v = {&q->gather, "", NULL, ""};
    if (lumat_lexeme_kind(t, q->at - 1) != TOKEN_COMPARE ||
        lumat_lexeme_kind(t, q->at - 3) != '.')
        return 0;
    if (lumat_is_lexeme(t, q->at - 2, "dtype"))
        lumat_gather_words(&q->gather, "f32 f64 bool");
    else if (lumat_is_lexeme(t, q->at - 2, "device"))
        lumat_gather_kind(&v, "device", 6);
    else
        return 0;
    return 1;
}

void lumat_offer_in_string(lumat_query *q)
{
    const lumat_lexemes *t = &q->tokens;
    lumat_calling call;
    int before = lumat_lexeme_kind(t, q->at - 1), found = 0;
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
