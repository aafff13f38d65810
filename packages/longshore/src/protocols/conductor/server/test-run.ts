// A test of a workflow: a run whose tasks no worker gets. Their results come from the request.

import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { kindOf } from "../../../core/text.ts";
import type { Board } from "../../../engine/board/board.ts";
import { isOpen, type TaskRowHead } from "../../../engine/board/task.ts";
import { isRunOpen } from "../../../engine/run/run.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { attemptIdOf } from "../dialect/ids.ts";
import { isSystemLane, mockedDomain } from "../dialect/operators.ts";
import { type Awaiting, nextChange } from "./await-run.ts";
import { badRequest, jsonText, notFound } from "./replies.ts";
import { mapIn, numberIn, objectOf, textIn } from "./request.ts";
import { type ReportStatus, statusOf, withOutput } from "./result-body.ts";
import { parseStart, type Starter } from "./start.ts";
import { settle } from "./tasks.ts";

export interface TestRunDeps extends Awaiting {
  readonly board: Board;
  readonly starter: Starter;
}

/** Maximum number of results in one request. Each is a transaction. */
const mocksMax = 1_000;
/** Maximum time of one test: the server's own tasks, such as scripts, run in it. */
const testMsMax = 30_000;

interface Mock {
  readonly status: ReportStatus;
  readonly output: JsonObject;
}

/** The results for one run by the reference names of its tasks, in their order, and those for its children. */
interface Mocks {
  readonly results: Map<string, Mock[]>;
  readonly children: Map<string, Mocks>;
}

export class TestRuns {
  readonly #deps: TestRunDeps;

  constructor(deps: TestRunDeps) {
    this.#deps = deps;
  }

  /** Responds with the run when nothing goes on without more results. As on the real server, the run stays as it is. */
  test = async (request: HttpRequest): Promise<HttpReply> => {
    const body = objectOf(request, "the test request");
    const references = new Set<string>();
    const mocks = mocksIn(body, "", { left: mocksMax, references });
    const start = await parseStart(request);
    const { starter, clock, renderer, reader } = this.#deps;
    const runId = await starter.start({
      ...start,
      taskToDomain: { "*": mockedDomain },
      idempotencyKey: undefined,
      mocked: [...references],
    });
    await this.#play(runId, mocks, clock.now() + testMsMax, request.gone);
    const known = async () => (await reader.run(runId)) ?? notFoundRun(runId);
    return jsonText(await renderer.answer(known, true));
  };

  async #play(runId: string, mocks: Mocks, endsAt: number, gone: AbortSignal): Promise<void> {
    for (;;) {
      const change = nextChange(this.#deps, runId, endsAt, gone);
      try {
        const step = await this.#advance(runId, mocks);
        if (step === "done" || gone.aborted || this.#deps.clock.now() >= endsAt) return;
        if (step === "waits") await change.happened;
      } finally {
        change.stop();
      }
    }
  }

  /** Ends each task that has a result. `waits`: nothing was ended, but the server itself works on a task. */
  async #advance(runId: string, mocks: Mocks): Promise<Step> {
    const { reader, renderer } = this.#deps;
    const run = await reader.runHead(runId);
    if (run === undefined || !isRunOpen(run.state)) return "done";
    const view = await renderer.viewOf(run);
    let step: Step = "done";
    for (const task of await reader.heads(runId)) {
      if (!isOpen(task.state) || task.state === "cancelling") continue;
      step = later(step, await this.#advanceTask(task, view.steps[task.node]?.task.type, mocks));
    }
    return step;
  }

  async #advanceTask(task: TaskRowHead, type: string | undefined, mocks: Mocks): Promise<Step> {
    if (type === "SUB_WORKFLOW") {
      const child = await this.#deps.reader.childOf(task.id, task.attempt);
      const ofChild = mocks.children.get(task.step);
      // The task ends some turns after its child.
      if (child === undefined || !isRunOpen(child.state)) return "waits";
      return ofChild === undefined ? "done" : this.#advance(child.id, ofChild);
    }
    if (task.lane === null && type !== "WAIT" && type !== "HUMAN") return "done";
    if (task.lane !== null && isSystemLane(task.lane.name)) return "waits";
    const mock = mocks.results.get(task.step)?.shift();
    if (mock === undefined) return "done";
    await this.#settle(task.id, task.attempt, mock);
    return "moved";
  }

  async #settle(id: string, attempt: number, { status, output }: Mock): Promise<void> {
    const { board, reader } = this.#deps;
    const task = await reader.task(id);
    if (task === undefined) return;
    const report = {
      ...{ taskId: attemptIdOf(id, attempt), workflowInstanceId: task.runId ?? "", status, workerId: undefined, reason: undefined },
      ...{ callbackSeconds: 0, merge: false, logs: [], extendLease: false },
    };
    await settle(board, { taskId: id, attempt }, task, withOutput(report, output, { text: "" }));
  }
}

type Step = "done" | "waits" | "moved";

function later(one: Step, other: Step): Step {
  if (one === "moved" || other === "moved") return "moved";
  return one === "waits" ? one : other;
}

function notFoundRun(id: string): never {
  throw notFound(`No such workflow found by id: ${id}`);
}

/** Counts the results of all runs together, and collects the names of the tasks that have results. */
interface Count {
  left: number;
  readonly references: Set<string>;
}

function mocksIn(body: JsonObject, path: string, count: Count): Mocks {
  const results = new Map<string, Mock[]>();
  for (const [reference, list] of Object.entries(mapIn(body, "taskRefToMockOutput") ?? {})) {
    const at = `${path}taskRefToMockOutput.${reference}`;
    if (!Array.isArray(list)) throw badRequest(`JSON parse error: ${at} is ${kindOf(list)}, expected a list of results`);
    count.left -= list.length;
    if (count.left < 0) throw badRequest(`The request has more than ${mocksMax} results of tasks, which is the limit.`);
    results.set(
      reference,
      list.map((mock, index) => mockIn(mock, `${at}[${index}]`)),
    );
    if (list.length > 0) count.references.add(reference);
  }
  const children = new Map<string, Mocks>();
  for (const [reference, child] of Object.entries(mapIn(body, "subWorkflowTestRequest") ?? {})) {
    const at = `${path}subWorkflowTestRequest.${reference}`;
    if (!isObject(child)) throw badRequest(`JSON parse error: ${at} is ${kindOf(child)}, expected an object`);
    children.set(reference, mocksIn(child as JsonObject, `${at}.`, count));
  }
  return { results, children };
}

/** The times that a result may have are checked and not used: a test takes no time. */
function mockIn(value: unknown, at: string): Mock {
  if (!isObject(value)) throw badRequest(`JSON parse error: ${at} is ${kindOf(value)}, expected an object`);
  const mock = value as JsonObject;
  for (const field of ["executionTime", "queueWaitTime"]) numberIn(mock, field);
  return { status: statusOf(textIn(mock, "status") ?? "COMPLETED"), output: mapIn(mock, "output") ?? {} };
}
