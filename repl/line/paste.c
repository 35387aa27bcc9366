/* Pasted text. A block is one entry. What was copied from a screen, prompts
 * and results, becomes the entries alone, which run one after the other. */
#include "keys.h"

#include "history.h"
#include "lumat.h"
#include "paint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <readline/readline.h>

/* --- a pasted screen ------------------------------------------------------ */

/* A line of a text; next: where the line behind it begins, or NULL. */
typedef struct span {
    const char *start, *next;
    size_t length, prompt; /* prompt: the length of the one it begins with */
    int is_first;          /* that is an entry's first */
} span;

static span line_at(const char *text)
{
    span line = {.start = text, .length = strcspn(text, "\n")};
    if (text[line.length] != '\0')
        line.next = text + line.length + 1;
    line.prompt = repl_prompt_in(text, &line.is_first);
    return line;
}

/* Whether text was copied from a screen: a line has an entry's prompt, or one
 * with the sign that Lua does not know. */
static int is_screen(const char *text)
{
    int found = 0;
    for (span line = {.next = text}; line.next != NULL && !found;) {
        line = line_at(line.next);
        found = line.is_first ||
                memmem(line.start, line.prompt, "…", strlen("…")) != NULL;
    }
    return found;
}

/* The first line may have lost its prompt in copying: it is part of an entry
 * if the next one goes on. */
static int is_cut_entry(const char *text, const span *line)
{
    span next;
    if (line->start != text || line->prompt > 0 || line->next == NULL)
        return 0;
    next = line_at(line->next);
    return next.prompt > 0 && !next.is_first;
}

/* Ctrl-C ended its typing: it did not run. What ran and ends so has a result,
 * the power of a number. */
static int was_cut(const char *entry, size_t length, int has_results)
{
    return length >= 2 && strcmp(entry + length - 2, "^C") == 0 &&
           (length == 2 || !has_results);
}

static void end_entry(char *entry, size_t *length, int flags, int has_results)
{
    entry[*length] = '\0';
    if (entry[strspn(entry, " \t\n")] != '\0' &&
        !was_cut(entry, *length, has_results))
        repl_queue_entry(entry, flags);
    *length = 0;
}

/* For an entry whose results begin at the line. One that failed on that screen
 * may fail here. */
static int flags_before(span line)
{
    static const char error[] = "error: ";
    while (line.prompt == 0) {
        if (strncmp(line.start, error, sizeof error - 1) == 0)
            return REPL_RUN | REPL_MAY_FAIL;
        if (line.next == NULL)
            break;
        line = line_at(line.next);
    }
    return REPL_RUN;
}

/* Queues the entries of a screen; results are left out. The last one waits
 * for RETURN unless its end was copied, too. */
static void queue_entries(const char *text, int run)
{
    char *entry = malloc(strlen(text) + 2);
    size_t length = 0;
    for (span line = {.next = text}; entry != NULL && line.next != NULL;) {
        line = line_at(line.next);
        if (line.prompt == 0 && !is_cut_entry(text, &line)) {
            if (length > 0)
                end_entry(entry, &length, flags_before(line), 1);
            continue;
        }
        if (line.is_first && length > 0)
            end_entry(entry, &length, REPL_RUN, 0);
        if (length > 0)
            entry[length++] = '\n';
        memcpy(entry + length, line.start + line.prompt,
               line.length - line.prompt);
        length += line.length - line.prompt;
    }
    if (entry != NULL)
        end_entry(entry, &length, run ? REPL_RUN : 0, 1);
    free(entry);
}

/* --- a dropped file ------------------------------------------------------- */
/* Terminals paste the path of a file that is dropped on them, in the quotes or
 * with the backslashes that a shell wants. */

/* The next byte of a path as a shell reads it; quote: '\'' or '"' inside of
 * such, else 0. Returns 0 at a blank or a newline, of which a path has none
 * outside of quotes, and at the end. */
static char shell_byte(const char **text, char *quote)
{
    for (;; ++*text) {
        char c = **text;
        if (c == *quote && c != '\0') {
            *quote = 0;
        } else if (!*quote && (c == '\'' || c == '"')) {
            *quote = c;
        } else {
            if (c == '\\' && *quote != '\'' && (*text)[1] != '\0')
                c = *++*text;
            else if (!*quote && (c == ' ' || c == '\n'))
                return 0;
            *text += c != '\0';
            return c;
        }
    }
}

/* Reads text as one path, and nothing else but blanks behind it. */
static int read_path(const char *text, char *path, size_t size)
{
    char quote = 0, c;
    size_t length = 0;
    while ((c = shell_byte(&text, &quote)) != '\0') {
        if (length + 1 >= size)
            return 0;
        path[length++] = c;
    }
    path[length] = '\0';
    return !quote && text[strspn(text, " ")] == '\0' && path[0] == '/';
}

/* What brings the file here, or NULL: it is none of data. */
static const char *loader_of(const char *path)
{
    struct stat s;
    const char *ending = strrchr(path, '.');
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode) || !ending)
        return NULL;
    if (strcmp(ending, ".lum") == 0)
        return "load_session";
    return lumat_is_data_name(path) ? "load" : NULL;
}

/* Where the text is the path of a file of data: puts load "path" into the line,
 * to be run or changed, and returns 1. */
static int insert_load(const char *text)
{
    char path[4096], call[2 * sizeof path + 32];
    const char *loader =
        read_path(text, path, sizeof path) ? loader_of(path) : NULL;
    if (!loader)
        return 0;
    int n = snprintf(call, sizeof call, "%s \"", loader);
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            call[n++] = '\\';
        call[n++] = *c;
    }
    strcpy(call + n, "\"");
    rl_insert_text(call);
    return 1;
}

/* --- reading -------------------------------------------------------------- */

typedef struct pasted {
    char *text;
    size_t length, room;
} pasted;

static int add_byte(pasted *p, int byte)
{
    if (p->length + 1 >= p->room) {
        size_t room = 2 * p->room + 256;
        char *text = realloc(p->text, room);
        if (text == NULL)
            return 0;
        p->text = text;
        p->room = room;
    }
    p->text[p->length++] = (char)byte;
    p->text[p->length] = '\0';
    return 1;
}

/* Up to the mark at the end, which is not kept. Returns 0 if it never came. */
static int read_pasted(pasted *p)
{
    static const char mark[] = "\033[201~";
    size_t size = sizeof mark - 1;
    int byte;
    while ((byte = rl_read_key()) >= 0) {
        if (byte == '\0' || !add_byte(p, byte))
            continue;
        if (p->length >= size &&
            memcmp(p->text + p->length - size, mark, size) == 0) {
            p->text[p->length -= size] = '\0';
            return 1;
        }
    }
    return 0;
}

/* Terminals send RETURN for a newline; some programs' lines end in both. */
static void unify_newlines(char *text)
{
    char *out = text;
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\r' && c[1] == '\n')
            continue;
        else
            *out++ = *c == '\r' ? '\n' : *c;
    *out = '\0';
}

/* Takes the newlines off the end; returns whether there were any. */
static int cut_newlines(char *text)
{
    size_t length = strlen(text), before = length;
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    return length < before;
}

/* A newline at the end of what is pasted is as good as RETURN. */
static int insert_pasted(char *text, int key)
{
    int ends, at_end = rl_point == rl_end;
    unify_newlines(text);
    ends = cut_newlines(text);
    if (rl_end == 0 && !ends && insert_load(text))
        return 0;
    if (is_screen(text)) {
        queue_entries(text, ends);
        ends = repl_take_queued();
    } else {
        rl_insert_text(text);
    }
    return ends && at_end ? repl_accept(1, key) : 0;
}

int repl_paste(int count, int key)
{
    pasted p = {0};
    int complete;
    (void)count;
    RL_SETSTATE(RL_STATE_MOREINPUT);
    repl_read_ahead(1);
    complete = add_byte(&p, ' ') && read_pasted(&p);
    repl_read_ahead(0);
    RL_UNSETSTATE(RL_STATE_MOREINPUT);
    if (complete)
        insert_pasted(p.text + 1, key);
    free(p.text);
    return 0;
}
