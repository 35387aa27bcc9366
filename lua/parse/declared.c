/* The names that a line declares itself: its locals, the variables of its
 * loops, the parameters of its functions. */
#include "token_list.h"

typedef struct reader {
    const lumat_lexemes *t;
    lumat_declared_fn *each;
    void *data;
} reader;

static void report(const reader *r, int i)
{
    const lumat_lexeme *name = &r->t->list[i];
    r->each(r->data, r->t->text + name->start, name->end - name->start);
}

/* "a, b <const>, c" from token i on. */
static void read_names(const reader *r, int i)
{
    const lumat_lexemes *t = r->t;
    while (lumat_lexeme_kind(t, i) == TOKEN_NAME) {
        report(r, i++);
        if (lumat_is_lexeme(t, i, "<"))
            i += 3;
        if (lumat_lexeme_kind(t, i) != ',')
            return;
        i++;
    }
}

/* Behind "function": a name such as a.b:c or none, and the parameters. */
static void read_parameters(const reader *r, int i)
{
    const lumat_lexemes *t = r->t;
    while (lumat_lexeme_kind(t, i) == TOKEN_NAME ||
           lumat_lexeme_kind(t, i) == '.' || lumat_lexeme_kind(t, i) == ':')
        i++;
    if (lumat_lexeme_kind(t, i) == '(')
        read_names(r, i + 1);
}

void lumat_each_declared(const lumat_lexemes *t, lumat_declared_fn *each,
                         void *data)
{
    reader r = {t, each, data};
    for (int i = 0; i < t->count; i++) {
        if (t->list[i].kind != TOKEN_WORD)
            continue;
        if (lumat_is_lexeme(t, i, "function"))
            read_parameters(&r, i + 1);
        else if (lumat_is_lexeme(t, i, "for"))
            read_names(&r, i + 1);
        else if (lumat_is_lexeme(t, i, "local"))
            read_names(&r, i + 1 + lumat_is_lexeme(t, i + 1, "function"));
    }
}
