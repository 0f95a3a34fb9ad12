/* sample_contract/note_tables.h - the table of a contract that only tests have: notes, which are due once. */
#ifndef WEIR_SAMPLE_NOTE_TABLES_H
#define WEIR_SAMPLE_NOTE_TABLES_H

#include "sample_contract/note_lifecycle.h"
#include "store/rows.h"

/* Something that somebody wants to be reminded of. */
#define NOTE_COLUMNS(X, row)                                                                                 \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, TEXT_OR_NULL, text, PERSONAL)                                                              \
    X(row, FIXED, INT, due_ms)                                                                               \
    X(row, CHANGING, INT, state, STATES(NOTE_NEW, NOTE_STATE_COUNT - 1)) /* enum note_state */               \
    X(row, CHANGING, INT, task)                                          /* that shows it; 0: none lives */  \
    X(row, CHANGING, BLOB, shown_by) /* the worker that did; empty: nobody has */
#define NOTE_TABLE(T)                                                                                        \
    T(note_row, "sample_notes", NOTE_COLUMNS, RETENTION("for good"), INDEXES({"client", "client", IN_BOTH}))

#define NOTE_TABLES(T) NOTE_TABLE(T)

NOTE_TABLES(DECLARE_TABLE)

#endif
