/* All pairs of the lifecycle of notes: a forgotten move is seen, and one too many. */
#include "case.h"

#include "sample_contract/note_lifecycle.h"

#include "base/banned.h"

enum { REFUSED = NOTE_STATE_COUNT };

TEST(every_state_and_trigger_leads_where_it_is_to_lead)
{
    static const int to[NOTE_STATE_COUNT][NOTE_TRIGGER_COUNT] = {
        [NOTE_NEW] =
            {[NOTE_ON_SHOW] = NOTE_SHOWN, [NOTE_ON_CLOSE] = NOTE_DONE, [NOTE_ON_DEADLINE] = NOTE_LATE},
        [NOTE_SHOWN] =
            {[NOTE_ON_SHOW] = REFUSED, [NOTE_ON_CLOSE] = NOTE_DONE, [NOTE_ON_DEADLINE] = NOTE_LATE},
        [NOTE_DONE] = {REFUSED, REFUSED, REFUSED},
        [NOTE_LATE] = {REFUSED, REFUSED, REFUSED},
    };
    for (int from = 0; from < NOTE_STATE_COUNT; from++)
        for (int on = 0; on < NOTE_TRIGGER_COUNT; on++) {
            enum note_state next = NOTE_NEW;
            bool moves = note_move((enum note_state)from, (enum note_trigger)on, &next);
            assert_int_equal(moves ? (int)next : REFUSED, to[from][on]);
        }
}

TEST(what_is_final_has_no_way_out)
{
    for (int from = 0; from < NOTE_STATE_COUNT; from++) {
        bool leaves = false;
        for (int on = 0; on < NOTE_TRIGGER_COUNT; on++) {
            enum note_state next;
            leaves |= note_move((enum note_state)from, (enum note_trigger)on, &next);
        }
        assert_int_equal(note_state_is_final((enum note_state)from), !leaves);
    }
}
