// A worker for Weir, standard library only: WEIR_API_KEY=... go run worker.go
//
// It takes one task at a time from a queue. To run several at a time, start the program several times.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	claimWaitMs = 10000            // a claim waits so long for a task
	serverAway  = 60 * time.Second // a server that restarts is waited for
)

var (
	url      = setting("WEIR_URL", "http://127.0.0.1:8080") + "/worker/v1/"
	queue    = setting("WEIR_QUEUE", "mail")
	mailbox  = setting("MAILBOX", "mailbox")
	workerID = fmt.Sprintf("go-%d", os.Getpid())

	heartbeat, _ = time.ParseDuration(setting("HEARTBEAT_SECONDS", "5") + "s") // well below the lease, 30 s

	ends   = make(chan os.Signal, 1) // SIGTERM or Ctrl-C
	ending = make(chan struct{})     // closed when one of them has come

	errPermanent = errors.New("permanent") // the work failed, and another attempt would fail in the same way
	errStopped   = errors.New("stopped")   // the job was canceled, the lease is lost, or this program ends
)

type object map[string]any

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// ---- your work ------------------------------------------------------------------------------------------

type mail struct {
	To           []string
	Text         string
	PauseSeconds float64 `json:"pause_seconds"`
}

// Sends a mail to each receiver: here, a file in a folder. Gives the result of the job.
// A task may run twice. The name of the file comes from the job, so a second run changes nothing.
func work(t *task) (object, error) {
	var m mail
	if err := json.Unmarshal(t.Payload, &m); err != nil || len(m.To) == 0 {
		return nil, fmt.Errorf("%w: the payload has no receivers", errPermanent)
	}
	for number, receiver := range m.To {
		if t.mustStop() {
			return nil, errStopped
		}
		path := filepath.Join(mailbox, t.JobID+"-"+receiver)
		if err := os.WriteFile(path, []byte(m.Text), 0o644); err != nil {
			return nil, err // a missing folder: tried again later
		}
		t.report(100*(number+1)/len(m.To), "sent to "+receiver)
		t.wait(time.Duration(m.PauseSeconds * float64(time.Second)))
	}
	return object{"sent": len(m.To)}, nil
}

// ---- the protocol ---------------------------------------------------------------------------------------

// One call of the worker API. Every call may be repeated, so a server that is away is waited for.
func call(verb string, body object, answer any) {
	text, err := json.Marshal(body)
	for began := time.Now(); ; time.Sleep(time.Second) {
		var status int
		if status, err = post(verb, text, answer); err == nil {
			return
		}
		if status/100 == 4 && status != 429 || time.Since(began) > serverAway {
			log.Fatalf("%s: %v", verb, err)
		}
	}
}

func post(verb string, text []byte, answer any) (status int, err error) {
	request, err := http.NewRequest("POST", url+verb, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("WEIR_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		problem, _ := io.ReadAll(response.Body)
		return response.StatusCode, errors.New(string(problem))
	}
	return 200, json.NewDecoder(response.Body).Decode(answer)
}

// A task that this worker has claimed.
type task struct {
	TaskID  string `json:"task_id"`
	Token   string
	JobID   string `json:"job_id"`
	Attempt int
	Payload json.RawMessage

	dropped  chan struct{} // closed when the job was canceled or the lease is lost
	mutex    sync.Mutex
	progress object
}

type result struct {
	OK     bool
	Code   string
	Cancel bool
}

// start, heartbeat, finish or release of this task; its result
func (t *task) tell(verb string, members object) result {
	item := object{"task_id": t.TaskID, "token": t.Token}
	for name, value := range members {
		item[name] = value
	}
	var answer struct{ Results []result }
	call(verb, object{"tasks": []object{item}}, &answer)
	return answer.Results[0]
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Ask it often, and end the work when it is true.
func (t *task) mustStop() bool { return isClosed(t.dropped) || isClosed(ending) }

// Sleeps, unless the work has to stop.
func (t *task) wait(d time.Duration) {
	select {
	case <-t.dropped:
	case <-ending:
	case <-time.After(d):
	}
}

func (t *task) report(percent int, note string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.progress = object{"progress": object{"percent": percent, "note": note}}
}

// The lease lasts while heartbeats come.
func (t *task) keepAlive(ended chan struct{}, done *sync.WaitGroup) {
	defer done.Done()
	for {
		select {
		case <-ended:
			return
		case <-time.After(heartbeat):
		}
		t.mutex.Lock()
		progress := t.progress
		t.mutex.Unlock()
		if r := t.tell("heartbeat", progress); !r.OK || r.Cancel { // lease_lost, or the job was canceled
			close(t.dropped)
			return
		}
	}
}

// Starts the task, does the work, reports the end.
func (t *task) run() {
	t.dropped = make(chan struct{})
	if !t.tell("start", nil).OK {
		return // another worker has the task
	}
	ended, done := make(chan struct{}), &sync.WaitGroup{}
	done.Add(1)
	go t.keepAlive(ended, done)
	value, err := work(t)
	close(ended)
	done.Wait()
	if isClosed(t.dropped) {
		return // the task is not ours any more
	}
	verb, members := "finish", object{"outcome": "success", "result": value}
	if errors.Is(err, errStopped) {
		verb, members = "release", object{"reason": "the worker stops"}
	} else if err != nil {
		members = failure(err)
	}
	log.Println(verb, t.JobID, "attempt", t.Attempt, members, t.tell(verb, members))
}

// What `finish` is told about a failure.
func failure(err error) object {
	code, retryable := "failed", true
	if errors.Is(err, errPermanent) {
		code, retryable = "permanent", false
	}
	return object{"outcome": "failure",
		"error": object{"code": code, "message": err.Error(), "retryable": retryable}}
}

func main() {
	signal.Notify(ends, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ends
		close(ending)
		log.Println("worker", workerID, "was told to end")
	}()
	log.Println("worker", workerID, "serves queue", queue)
	for !isClosed(ending) {
		var claimed struct{ Tasks []*task }
		call("claim", object{"worker_id": workerID, "queues": []string{queue}, "max": 1,
			"wait_ms": claimWaitMs}, &claimed)
		for _, t := range claimed.Tasks {
			if isClosed(ending) { // the task came while the program was told to end
				log.Println("release", t.JobID, t.tell("release", nil))
			} else {
				t.run()
			}
		}
	}
}
