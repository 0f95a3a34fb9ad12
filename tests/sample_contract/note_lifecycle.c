#include "sample_contract/note_lifecycle.h"

#include "base/must.h"

#include "base/banned.h"

/* Every move there is. Absent means refused. */
static const struct {
    enum note_state from;
    enum note_trigger on;
    enum note_state to;
} moves[] = {
    {NOTE_NEW, NOTE_ON_SHOW, NOTE_SHOWN},      {NOTE_NEW, NOTE_ON_CLOSE, NOTE_DONE},
    {NOTE_SHOWN, NOTE_ON_CLOSE, NOTE_DONE},    {NOTE_NEW, NOTE_ON_DEADLINE, NOTE_LATE},
    {NOTE_SHOWN, NOTE_ON_DEADLINE, NOTE_LATE},
};

bool note_move(enum note_state from, enum note_trigger on, enum note_state *ret_to)
{
    for (size_t i = 0; i < LENGTH_OF(moves); i++)
        if (moves[i].from == from && moves[i].on == on) {
            *ret_to = moves[i].to;
            return true;
        }
    return false;
}

bool note_state_is_final(enum note_state s)
{
    return s == NOTE_DONE || s == NOTE_LATE;
}

const char *note_state_text(enum note_state s)
{
#define X(name, wire) [NOTE_##name] = wire,
    static const char *const texts[] = {NOTE_STATES(X)};
#undef X
    return texts[s];
}
