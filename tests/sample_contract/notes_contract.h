/* sample_contract/notes_contract.h - notes as a contract: all that core has to know of them. */
#ifndef WEIR_SAMPLE_NOTES_CONTRACT_H
#define WEIR_SAMPLE_NOTES_CONTRACT_H

#include "api/contract.h"

extern const struct contract notes_contract;

#endif
