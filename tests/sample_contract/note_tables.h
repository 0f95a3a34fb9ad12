/* sample_contract/note_tables.h - the table of a contract that only tests have: notes, which are due once. */
#ifndef WEIR_TESTS_NOTE_TABLES_H
#define WEIR_TESTS_NOTE_TABLES_H

#include "store/rows.h"

enum note_state { NOTE_NEW, NOTE_SHOWN, NOTE_DONE, NOTE_LATE, NOTE_STATE_COUNT };

/* Something that somebody wants to be reminded of. */
#define NOTE_COLUMNS(X, row)                                                                                 \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, TEXT_OR_NULL, text, PERSONAL)                                                              \
    X(row, CHANGING, INT, state, STATES(NOTE_NEW, NOTE_STATE_COUNT - 1)) /* enum note_state */               \
    X(row, CHANGING, INT, due_ms)                                                                            \
    X(row, CHANGING, BLOB, token)
#define NOTE_TABLE(T)                                                                                        \
    T(note_row, "sample_notes", NOTE_COLUMNS, RETENTION("for good"), INDEXES({"client", "client", IN_BOTH}))

#define NOTE_TABLES(T) NOTE_TABLE(T)

NOTE_TABLES(DECLARE_TABLE)

#endif
