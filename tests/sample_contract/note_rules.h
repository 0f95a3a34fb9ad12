/* sample_contract/note_rules.h - what `weir verify` checks of notes. */
#ifndef WEIR_SAMPLE_NOTE_RULES_H
#define WEIR_SAMPLE_NOTE_RULES_H

#include "store/verify_rules.h"

extern const struct verify_rules verify_notes;

#endif
