#!/bin/bash
# A worker for Weir with curl and jq: WEIR_API_KEY=... ./worker.sh
#
# It takes one task at a time from a queue. To run several at a time, start the program several times.
set -u
url=${WEIR_URL:-http://127.0.0.1:8080}/worker/v1
queue=${WEIR_QUEUE:-mail}
mailbox=${MAILBOX:-mailbox}
worker_id=$(hostname)-$$
claim_wait_ms=10000                    # a claim waits so long for a task
heartbeat_seconds=${HEARTBEAT_SECONDS:-5} # well below the lease, 30 s
permanent=65                           # the exit code of work that another attempt would not help
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program_ends=
trap 'program_ends=yes' TERM INT

# ---- your work ------------------------------------------------------------------------------------------

# work JOB_ID PAYLOAD: sends a mail to each receiver, here a file in a folder. Prints the result of the job.
# A task may run twice. The name of the file comes from the job, so a second run changes nothing.
work() {
    local receivers number=0 receiver pause
    mapfile -t receivers < <(jq -r '.to[]?' <<<"$2")
    pause=$(jq -r '.pause_seconds // 0' <<<"$2")
    if [ ${#receivers[@]} = 0 ]; then
        echo "the payload has no receivers" >&2
        return $permanent
    fi
    for receiver in "${receivers[@]}"; do
        jq -r '.text // ""' <<<"$2" >"$mailbox/$1-$receiver" || return 1 # a missing folder: tried again later
        number=$((number + 1))
        jq -nc --arg note "sent to $receiver" "{percent: $((100 * number / ${#receivers[@]})), note: \$note}" \
            >"$folder/progress.new"
        mv "$folder/progress.new" "$folder/progress"
        sleep "$pause"
    done
    echo "{\"sent\": $number}"
}

# ---- the protocol ---------------------------------------------------------------------------------------

# call VERB BODY: one call of the worker API. Every call may be repeated, so a server that is away is waited for.
# The key is not an argument of curl: other users could read it there.
call() {
    curl -sS --fail-with-body --retry 60 --retry-delay 1 --retry-connrefused --max-time 60 \
        -H @<(echo "Authorization: Bearer $WEIR_API_KEY") -H "Content-Type: application/json" \
        "$url/$1" --data-binary @- <<<"$2"
}

# tell VERB TASK MEMBERS: start, heartbeat, finish or release of one task; its result.
tell() {
    call "$1" "$(jq -nc --argjson task "$2" --argjson more "$3" \
        '{tasks: [{task_id: $task.task_id, token: $task.token} + $more]}')" | jq -c '.results[0]'
}

# keep_alive TASK PID: the lease lasts while heartbeats come. Ends the work of a task that is not ours any more.
keep_alive() {
    local more='{}'
    while sleep "$heartbeat_seconds"; do
        [ ! -e "$folder/progress" ] || more="{\"progress\": $(cat "$folder/progress")}"
        if ! tell heartbeat "$1" "$more" | jq -e '.ok and (.cancel | not)' >/dev/null; then
            touch "$folder/dropped"
            kill "$2"
            return
        fi
    done
}

# end_of TASK PID: waits for the work, and prints what to tell the server: a verb, and members of the item.
end_of() {
    local code
    wait "$2"
    code=$?
    if kill "$2" 2>/dev/null; then # the work still runs: SIGTERM ended the wait
        echo 'release {"reason": "the worker stops"}'
    elif [ $code = 0 ]; then
        echo "finish $(jq -c '{outcome: "success", result: .}' "$folder/result")"
    else
        echo "finish $(jq -nc --rawfile message "$folder/error" --argjson retryable \
            "$([ $code = $permanent ] && echo false || echo true)" \
            '{outcome: "failure", error: {code: "failed", message: $message[:500], retryable: $retryable}}')"
    fi
}

# run TASK: starts the task, does the work, reports the end.
run() {
    local job_id end work_pid heart_pid
    job_id=$(jq -r .job_id <<<"$1")
    tell start "$1" '{}' | jq -e .ok >/dev/null || return # another worker has the task
    rm -f "$folder"/*
    work "$job_id" "$(jq -c .payload <<<"$1")" >"$folder/result" 2>"$folder/error" &
    work_pid=$!
    keep_alive "$1" $work_pid &
    heart_pid=$!
    end_of "$1" $work_pid >"$folder/end"
    kill $heart_pid 2>/dev/null
    wait $heart_pid 2>/dev/null
    [ ! -e "$folder/dropped" ] || return # the task is not ours any more
    read -r verb end <"$folder/end"
    echo "$verb $job_id attempt $(jq .attempt <<<"$1") $end $(tell "$verb" "$1" "$end")"
}

echo "worker $worker_id serves queue $queue"
while [ -z "$program_ends" ]; do
    claim=$(jq -nc --arg worker "$worker_id" --arg queue "$queue" --argjson wait "$claim_wait_ms" \
        '{worker_id: $worker, queues: [$queue], max: 1, wait_ms: $wait}')
    claimed=$(call claim "$claim") || {
        [ -z "$program_ends" ] || exit 0
        echo "claim: $claimed" >&2
        exit 1
    }
    task=$(jq -c '.tasks[0] // empty' <<<"$claimed")
    [ -n "$task" ] || continue
    if [ -n "$program_ends" ]; then # the task came while the program was told to end
        echo "release $(jq -r .job_id <<<"$task") $(tell release "$task" '{}')"
    else
        run "$task"
    fi
done
