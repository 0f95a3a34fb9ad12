/* sample_contract/note_lifecycle.h - every state and move of a note. The numbers are stored.
 *
 *   NEW ─show─► SHOWN ─close─► DONE        NEW ─close─► DONE
 *    └─deadline─► LATE ◄─deadline─┘ (SHOWN) */
#ifndef WEIR_SAMPLE_NOTE_LIFECYCLE_H
#define WEIR_SAMPLE_NOTE_LIFECYCLE_H

#include <stdbool.h>

/* X(name, wire) */
#define NOTE_STATES(X)                                                                                       \
    X(NEW, "new")                                                                                            \
    X(SHOWN, "shown")                                                                                        \
    X(DONE, "done") /* closed in time */                                                                     \
    X(LATE, "late") /* nobody closed it before its time */
#define X(name, wire) NOTE_##name,
enum note_state { NOTE_STATES(X) NOTE_STATE_COUNT };
#undef X

enum note_trigger { NOTE_ON_SHOW, NOTE_ON_CLOSE, NOTE_ON_DEADLINE, NOTE_TRIGGER_COUNT };

/* False: the lifecycle has no such move. */
bool note_move(enum note_state from, enum note_trigger on, enum note_state *ret_to);
bool note_state_is_final(enum note_state s);
const char *note_state_text(enum note_state s);

#endif
