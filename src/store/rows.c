#include "store/rows.h"

#include <stddef.h>

#include "base/must.h"

#include "base/banned.h"

/* The column lists name only the member, so each table's struct is bound through CURRENT_ROW. */
#define INT_COLUMN(name)  {#name, COLUMN_INT, offsetof(struct CURRENT_ROW, name)},
#define TEXT_COLUMN(name) {#name, COLUMN_TEXT, offsetof(struct CURRENT_ROW, name)},
#define BLOB_COLUMN(name) {#name, COLUMN_BLOB, offsetof(struct CURRENT_ROW, name)},
#define COLUMNS(row, columns)                                                                                \
    static const struct column columns_##row[] = {columns(INT_COLUMN, TEXT_COLUMN, BLOB_COLUMN)};

#define CURRENT_ROW client_row
COLUMNS(client_row, CLIENT_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW client_state_row
COLUMNS(client_state_row, CLIENT_STATE_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW client_number_row
COLUMNS(client_number_row, CLIENT_NUMBER_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW operator_action_row
COLUMNS(operator_action_row, OPERATOR_ACTION_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW queue_row
COLUMNS(queue_row, QUEUE_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW queue_flow_row
COLUMNS(queue_flow_row, QUEUE_FLOW_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW client_secret_row
COLUMNS(client_secret_row, CLIENT_SECRET_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW api_key_row
COLUMNS(api_key_row, API_KEY_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW key_head_row
COLUMNS(key_head_row, KEY_HEAD_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW webhook_row
COLUMNS(webhook_row, WEBHOOK_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW webhook_key_row
COLUMNS(webhook_key_row, WEBHOOK_KEY_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW create_row
COLUMNS(create_row, CREATE_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW job_row
COLUMNS(job_row, JOB_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW end_row
COLUMNS(end_row, END_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW archive_row
COLUMNS(archive_row, ARCHIVE_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW task_row
COLUMNS(task_row, TASK_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW stats_row
COLUMNS(stats_row, STATS_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW kept_row
COLUMNS(kept_row, KEPT_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW delivery_row
COLUMNS(delivery_row, DELIVERY_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW request_day_row
COLUMNS(request_day_row, REQUEST_DAY_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW inbox_row
COLUMNS(inbox_row, INBOX_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW tenant_row
COLUMNS(tenant_row, TENANT_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW plan_row
COLUMNS(plan_row, PLAN_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW plan_version_row
COLUMNS(plan_version_row, PLAN_VERSION_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW plan_step_row
COLUMNS(plan_step_row, PLAN_STEP_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW run_id_row
COLUMNS(run_id_row, RUN_ID_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW run_row
COLUMNS(run_row, RUN_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW run_event_row
COLUMNS(run_event_row, RUN_EVENT_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW run_mark_row
COLUMNS(run_mark_row, RUN_MARK_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW run_step_row
COLUMNS(run_step_row, RUN_STEP_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW refused_event_row
COLUMNS(refused_event_row, REFUSED_EVENT_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW event_id_row
COLUMNS(event_id_row, EVENT_ID_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW alert_row
COLUMNS(alert_row, ALERT_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW decision_row
COLUMNS(decision_row, DECISION_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW signal_key_row
COLUMNS(signal_key_row, SIGNAL_KEY_COLUMNS)
#undef CURRENT_ROW
#define CURRENT_ROW policy_key_row
COLUMNS(policy_key_row, POLICY_KEY_COLUMNS)
#undef CURRENT_ROW

#define X(row, sql, columns, keys, fixed)                                                                    \
    const struct table table_##row = {sql,   columns_##row,      LENGTH_OF(columns_##row), keys,             \
                                      fixed, sizeof(struct row), TABLE_NUMBER_##row};                        \
    _Static_assert(fixed <= LENGTH_OF(columns_##row), "fixed columns are columns");
STORE_TABLES(X)
#undef X

const struct table *const tables[TABLE_COUNT] = {
#define X(row, sql, columns, keys, fixed) &table_##row,
    STORE_TABLES(X)
#undef X
};
