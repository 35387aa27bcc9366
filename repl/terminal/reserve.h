/* Memory kept for when there is no other. */
#ifndef RESERVE_H
#define RESERVE_H

/* At each prompt: keeps some where there is enough; else gives what was kept
 * for prompts to the next entry, and says so once. */
void repl_keep_reserve(void);

/* Frees what is kept for the prompt, or also what is for leaving. */
void repl_give_reserve(void);
void repl_give_last_reserve(void);

#endif
