/* The picture of Readline's line as it is now. */
#include "current_line.h"

#include "entry.h"
#include "terminal.h"

#include <string.h>
#include <readline/readline.h>

static repl_picture whole, part;
static repl_highlight colours;
static char prompt[1024];
static int first_row; /* of the part that is shown */

int repl_readline_has(const char *variable)
{
    const char *value = rl_variable_value(variable);
    return value != NULL && strcmp(value, "on") == 0;
}

/* The user may have Readline put its mode in front of the prompt. */
static const char *mode_string(void)
{
    const char *name = "emacs-mode-string", *otherwise = "@", *value;
    if (rl_display_prompt != rl_prompt ||
        !repl_readline_has("show-mode-in-prompt"))
        return "";
    if (rl_editing_mode == 0 && rl_get_keymap() == vi_movement_keymap)
        name = "vi-cmd-mode-string", otherwise = "(cmd)";
    else if (rl_editing_mode == 0)
        name = "vi-ins-mode-string", otherwise = "(ins)";
    value = rl_variable_value(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* The prompt as it stands on the screen: \1 and \2 enclose what does not. */
static void draw_prompt(void)
{
    const char *texts[] = {mode_string(), rl_display_prompt};
    size_t length = 0;
    int hidden = 0;
    for (int i = 0; i < 2; i++)
        for (const char *c = texts[i]; c != NULL && *c != '\0'; c++)
            if (*c == '\1' || *c == '\2')
                hidden = *c == '\1';
            else if (!hidden && length + 1 < sizeof prompt)
                prompt[length++] = *c;
    prompt[length] = '\0';
}

const char *repl_drawn_prompt(void)
{
    return prompt;
}

const repl_picture *repl_drawn_whole(void)
{
    return &whole;
}

void repl_begin_drawing(void)
{
    first_row = 0;
}

/* A bracket's partner is a help while typing. */
const repl_picture *repl_draw_line(int is_final)
{
    size_t focus = is_final ? LUMAT_NOWHERE : (size_t)rl_point;
    int rows, columns;
    repl_line_state line = {.prompt = prompt,
                            .primary = rl_prompt,
                            .text = rl_line_buffer,
                            .length = (size_t)rl_end,
                            .point = (size_t)rl_point,
                            .mark = (size_t)rl_mark,
                            .ascii = repl_ascii()};
    rl_get_screen_size(&rows, &columns);
    draw_prompt();
    if (!repl_highlight_text(&colours, line.text, line.length, focus))
        return NULL;
    line.inks = colours.inks;
    line.opens = colours.opens;
    repl_draw(&whole, &line, columns);
    if (whole.failed || whole.row_count <= rows)
        return whole.failed ? NULL : &whole;
    repl_draw_part(&part, &whole, rows, line.ascii, &first_row);
    return part.failed ? NULL : &part;
}
