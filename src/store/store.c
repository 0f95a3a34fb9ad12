#include "store/store.h"

#include "base/banned.h"

struct store *store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
    return NULL;
}
