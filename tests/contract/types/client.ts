// A typical client of each API, written against the generated types alone. It is compiled, never run: what a
// caller should be able to write without a cast is written here, and what should not compile is marked.
import type { components as EngineComponents, paths as EnginePaths } from "./engine";
import type { components as JobsComponents, paths as JobsPaths } from "./jobs";
import type { components as OpsComponents } from "./ops";
import type { components as WorkerComponents } from "./worker";

type Jobs = JobsComponents["schemas"];
type Worker = WorkerComponents["schemas"];
type Engine = EngineComponents["schemas"];
type Ops = OpsComponents["schemas"];

declare function call<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;

// ---- jobs: only the type is needed; a payload is any object; what has a default may be left out

const smallest: Jobs["SubmitJob"] = { type: "EXECUTE" };
const full: Jobs["SubmitJob"] = {
  type: "DEFERRED",
  execution_at: "2030-01-01T06:00:00Z",
  queue: "thumbnails",
  priority: 7,
  payload: { image: "cat.png", sizes: [320, 640], deep: { a: null } },
};
// @ts-expect-error a type that there is not
const wrongType: Jobs["SubmitJob"] = { type: "RUN" };
// @ts-expect-error a member that there is not
const wrongMember: Jobs["SubmitJob"] = { type: "EXECUTE", priorty: 3 };
const batch: Jobs["SubmitJobBatch"] = { jobs: [smallest, full] };

export async function submitAll(): Promise<string[]> {
  const answer = await call<Jobs["BatchResults"]>("POST", "/v1/jobs:batch", batch);
  return answer.results.map((result) => ("error" in result ? result.error.code : result.job_id));
}

export async function failedJobs(): Promise<Jobs["Job"][]> {
  const query: NonNullable<JobsPaths["/v1/jobs"]["get"]["parameters"]["query"]> = { state: "FAILED", limit: 10 };
  const page = await call<Jobs["JobPage"]>("GET", "/v1/jobs?" + new URLSearchParams(query as {}).toString());
  const cursor: string | null = page.next_cursor;
  return cursor === null ? page.items : [];
}

export function describe(job: Jobs["Job"]): string {
  const image: unknown = job.payload?.["image"];
  switch (job.state) {
    case "SUCCEEDED":
    case "FAILED":
    case "CANCELED":
      return `${job.job_id} ended ${job.outcome} ${String(image)}`;
    case "CREATED":
    case "QUEUED":
    case "ASSIGNED":
    case "RUNNING":
      return `${job.job_id} ${job.state}`;
  }
}

// ---- workers: a claim gives a union, told apart by `kind`

const claim: Worker["Claim"] = { worker_id: "w1", queues: ["thumbnails"], max: 8 };

export async function work(): Promise<void> {
  const { tasks } = await call<Worker["Claimed"]>("POST", "/worker/v1/claim", claim);
  const done: Worker["Finish"][] = [];
  for (const task of tasks) {
    const id = { task_id: task.task_id, token: task.token };
    if (task.kind === "job") {
      const jobId: string = task.job_id;
      const width: unknown = task.payload?.["width"];
      done.push({ ...id, outcome: "success", result: { jobId, width } });
    } else if (task.kind === "step") {
      const stepId: string = task.step_id;
      const input: unknown = task.payload.inputs["extract"];
      const table: unknown = task.definition.config?.["table"];
      done.push({ ...id, outcome: "failure", error: { code: "nope", message: `${stepId} ${input} ${table}` } });
    }
  }
  const finished: Worker["FinishBatch"] = { tasks: done };
  const { results } = await call<Worker["Results"]>("POST", "/worker/v1/finish", finished);
  for (const result of results) if (!result.ok && result.code === "lease_lost") continue;
}

// ---- engine: plans, runs, events, signals

const plan: Engine["PutPlan"] = {
  planId: "nightly",
  planVersion: "7",
  steps: [
    { stepId: "extract", config: { table: "orders" }, timeoutMs: 60000 },
    { stepId: "publish", dependsOn: ["extract"], queue: "etl", maxAttempts: 3, delayMs: 1000 },
  ],
};
const start: Engine["StartRun"] = {
  planId: "nightly",
  planVersion: "7",
  projectId: "shop",
  environmentId: "prod",
  params: { day: "2026-11-15" },
};
const signal: Engine["SignalRequest"] = {
  signalId: "2b7f3c1a-9d4e-4c6b-8f5a-1e2d3c4b5a69",
  signalType: "PAUSE",
  payload: { reason: "the warehouse is full" },
};
// @ts-expect-error a signal that there is not
const wrongSignal: Engine["SignalRequest"] = { ...signal, signalType: "STOP" };
const event: Engine["RunEventWrite"] = {
  eventId: "8f14e45f-ceea-467f-a9a2-90ba2d35a1c1",
  eventType: "StepStarted",
  runId: "r",
  tenantId: "acme",
  projectId: "shop",
  environmentId: "prod",
  planId: "p",
  planVersion: "1",
  stepId: "a",
  engineAttemptId: 1,
  logicalAttemptId: 1,
  idempotencyKey: "7f4b974658a54fb2aee9ecb9cefebd2eec27f3fd01f0f8c0d031dfc4a5b96e3c",
  emittedAt: "2026-11-15T23:10:00.123Z",
  payload: { worker: "w-7" },
};
type Append = EnginePaths["/engine/v1/runs/{run_id}/events"]["post"]["requestBody"]["content"]["application/json"];
const one: Append = event;
const many: Append = { events: [event] };

export async function runPlan(): Promise<string[]> {
  await call<Engine["PlanPut"]>("POST", "/engine/v1/plans", plan);
  const { runId } = await call<Engine["RunStarted"]>("POST", "/engine/v1/runs", start);
  const answer = await call<Engine["SignalAnswer"]>("POST", `/engine/v1/runs/${runId}/signals`, signal);
  const run = await call<Engine["Run"]>("GET", `/engine/v1/runs/${runId}`);
  const day: unknown = run.params?.["day"];
  const statuses = run.steps.map((step): "PENDING" | "RUNNING" | "SUCCESS" | "FAILED" | "SKIPPED" => step.status);
  const newest = await call<Engine["PlanPage"]>("GET", "/engine/v1/plans?planId=nightly&limit=1");
  return [answer.engineResult?.status ?? "held", String(day), ...statuses, newest.items[0]?.planVersion ?? ""];
}

// ---- operations

export function isBusy(topology: Ops["Topology"]): boolean {
  return topology.pressure.some((queue) => queue.level === "shed" || queue.level === "degraded");
}

export function told(problem: Jobs["Problem"]): string {
  return `${problem.code}: ${problem.detail}`;
}

export const unused = [wrongType, wrongMember, wrongSignal, one, many];
