/* The form of the history file. */
#include "history_form.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int is_time(const char *line)
{
    return line[0] == '#' && isdigit((unsigned char)line[1]);
}

/* Whether it reads "#<digit>…" behind any number of backslashes. */
static int looks_like_time(const char *line)
{
    return is_time(line + strspn(line, "\\"));
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

static int add_start(repl_entries *entries, size_t start)
{
    if (entries->count + 1 >= entries->room) {
        int room = 2 * entries->room + 1024;
        size_t *starts =
            realloc(entries->starts, (size_t)room * sizeof *starts);
        if (starts == NULL)
            return 0;
        entries->starts = starts;
        entries->room = room;
    }
    entries->starts[entries->count++] = start;
    return 1;
}

/* Lines before the first time are entries of their own. */
int repl_find_entries(repl_entries *entries, char *text)
{
    const char *line = text;
    int timed = 0, ok = 1;
    *entries = (repl_entries){.text = text};
    for (; *line != '\0' && ok; line = next_line(line)) {
        timed |= is_time(line);
        if (is_time(line) || !timed)
            ok = add_start(entries, (size_t)(line - text));
    }
    ok = ok && add_start(entries, (size_t)(line - text));
    if (ok)
        entries->count--;
    return ok;
}

void repl_free_entries(repl_entries *entries)
{
    free(entries->text);
    free(entries->starts);
}

char *repl_entry_typed(const repl_entries *entries, int i)
{
    const char *line = entries->text + entries->starts[i];
    const char *end = entries->text + entries->starts[i + 1];
    char *entry = malloc((size_t)(end - line) + 1), *out = entry;
    if (entry == NULL)
        return NULL;
    if (is_time(line))
        line = next_line(line);
    while (line < end) {
        const char *next = next_line(line);
        if (looks_like_time(line))
            line++;
        memcpy(out, line, (size_t)(next - line));
        out += next - line;
        line = next;
    }
    if (out > entry && out[-1] == '\n')
        out--;
    *out = '\0';
    return entry;
}

char *repl_entry_filed(const char *entry)
{
    char *form = NULL;
    size_t length;
    FILE *out = open_memstream(&form, &length);
    if (out == NULL)
        return NULL;
    fprintf(out, "#%lld\n", (long long)time(NULL));
    for (const char *line = entry; *line != '\0';) {
        size_t count = strcspn(line, "\n");
        if (looks_like_time(line))
            fputc('\\', out);
        fwrite(line, 1, count, out);
        fputc('\n', out);
        line += count + (line[count] != '\0');
    }
    if (fclose(out) != 0) {
        free(form);
        return NULL;
    }
    return form;
}
