#include "cli/columns.h"

#include "base/must.h"

#include "base/banned.h"

struct text_table *columns_table(const struct list_column *columns, size_t count)
{
    const char *headings[TEXT_TABLE_COLUMNS_MAX];
    MUST(count <= TEXT_TABLE_COLUMNS_MAX);
    for (size_t i = 0; i < count; i++)
        headings[i] = columns[i].heading;
    return text_table_new(headings, count);
}

void columns_row(struct text_table *t, const struct list_column *columns, size_t count,
                 const struct json *item)
{
    for (size_t i = 0; i < count; i++)
        if (columns[i].member)
            text_table_add_member(t, columns[i].member, json_get(item, columns[i].member));
        else
            columns[i].cell(t, item);
}

void columns_show(const struct list_column *columns, size_t count, const struct json *items)
{
    struct text_table *t = columns_table(columns, count);
    for (const struct json *item = items ? items->child : NULL; item; item = item->next)
        columns_row(t, columns, count, item);
    text_table_show_and_free(t);
}
