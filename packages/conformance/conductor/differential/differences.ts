// Where our responses differ from the real server's on purpose. Each reason is also an entry of the protocol's README, under "Differences".
import { type Accepted, anyOf, fields, isError, type Place, steps } from "../../src/differential/accepted.ts";

const isTime = (field: string): boolean => field === "createTime" || field === "updateTime";
const inDefinition = ({ at, chapter }: Place): boolean =>
  /[dD]efinition\b|[sS]chema\b/.test(at) || ["task-definitions", "workflow-definitions"].includes(chapter);

export const differences: readonly Accepted[] = [
  {
    reason: "A mistake of the caller is refused with 400, 404, 409 or 415 where the real server returns 500.",
    when: ({ theirs, our }) => theirs === 500 && isError(our) && our < 500,
  },
  {
    reason:
      "For a wrong method, an operator that is not served and a run that does not exist, the message is ours and the status is the real server's.",
    when: (place) =>
      place.theirs === place.our &&
      anyOf(
        steps("misc", "a wrong method"),
        steps("task-definitions", "wrong method"),
        steps("workflow-definitions", "DO_WHILE without a condition"),
        steps("by-reference", "sync of an unknown run"),
        steps("event-handlers", "remove is not a POST"),
      )(place),
  },
  {
    reason: "An unknown path gets an error in Longshore's own format, because `/api` has other protocols too.",
    when: steps("misc", "an unknown path", "an unknown path posted to"),
  },
  {
    reason: "`/health` and `/api/version` describe this server.",
    when: steps("misc", "health", "version"),
  },
  {
    reason: "There is a schema registry and a token exchange, as the SDKs expect; the real server has neither.",
    when: steps("misc", "schema", "schema by name", "token"),
  },
  {
    reason: "PUT of an unknown task definition creates it, also with its name in the path, so that the JavaScript SDK can register one.",
    when: steps(
      "task-definitions",
      "update of an unknown one",
      "update with the name in the path",
      "an unknown one",
      "list",
      "the odd name comes back",
    ),
  },
  {
    reason: "A body is read with any content type, and may be missing where no field of it is required.",
    when: anyOf(
      steps("task-definitions", "text content type"),
      steps("starts", "by path without a body"),
      steps("by-reference", "no body", "sync"),
      steps("logs", "an empty one"),
    ),
  },
  {
    reason: "Unknown fields of a definition are stored and returned.",
    when: fields("colour"),
  },
  {
    reason: "A run keeps the `createdBy` that it was started with.",
    when: steps("starts", "who created it"),
  },
  {
    reason: "The times of a definition are those of its first storing and of its last change, also after a second POST.",
    when: (place) => isTime(place.field) && inDefinition(place),
  },
  {
    reason:
      "A JOIN on a task that does not exist, a FORK_JOIN without a JOIN and a SUB_WORKFLOW without a name are refused when they are registered.",
    when: steps("workflow-definitions", "JOIN on nobody", "FORK_JOIN without a JOIN", "SUB_WORKFLOW without a name"),
  },
  {
    reason: "`inputTemplate` fills in what is missing also when no input was given at all.",
    when: (place) =>
      place.chapter === "starts" && /^template |the run by path|who created it|is version 2|domain on the task/.test(place.step),
  },
  {
    reason: "A run started with its own `workflowDef` without tasks completes at once; the real server refuses it.",
    when: steps("starts", "with a definition of its own without tasks", "the run without tasks"),
  },
  {
    reason: "Idempotency keys work and are shown with the run; the real server ignores them.",
    when: ({ chapter }) => chapter === "idempotency",
  },
  {
    reason: "Batch poll accepts POST as well as GET.",
    when: steps("polls", "batch by POST"),
  },
  {
    reason: "Requeueing counts the tasks that wait, not those that a worker has.",
    when: steps("queues", "requeue", "sizes after requeue"),
  },
  {
    reason: "update-v2 never returns 404 for an id that no longer exists: both SDKs would conclude that the server has no update-v2.",
    when: (place) => place.chapter === "updates-v2" && place.theirs === 404 && place.our === 204,
  },
  {
    reason: "An update by reference for an unknown run is refused with 404, not with an empty 200.",
    when: steps("by-reference", "an unknown run"),
  },
  {
    reason:
      "Logs may have their text in `message`. A line that is sent in quotes is stored without them. Lines are shown in the order of their arrival, and a line without a time gets the time of its arrival.",
    when: anyOf(steps("logs", "all, oldest first", "the first ten of them", "by another name")),
  },
  {
    reason: "`executed` is true for every task that completed, and for no other.",
    when: fields("executed"),
  },
  {
    reason:
      "`workerId` is the worker that polled the task; the real server stores the `workerId` of the result, or none when the result has none.",
    when: fields("workerId"),
  },
  {
    reason: "A task that no worker has polled yet has no `updateTime`.",
    when: ({ at, field, reference, ours }) => at.includes("tasks.") && field === "updateTime" && reference !== 0 && ours === 0,
  },
  {
    reason: "A run that continues after its end has no end time, no output, and none of the earlier tasks that it will run again.",
    when: anyOf(
      ({ step, at }) =>
        /retried|^the parent runs|^a new child|rerun/.test(step) && /^body\.(endTime|output|tasks|lastRetriedTime)\b/.test(at),
      ({ chapter, at }) => chapter === "control-children" && /^body\.(endTime|output|lastRetriedTime)\b/.test(at),
      steps("control", "rerun, the run", "rerun from the second task, the run"),
    ),
  },
  {
    reason:
      "A task that continues in its place has a new id, so that late reports on the earlier try are refused; the earlier id leads to it.",
    when: ({ chapter, at, step }) => chapter === "control-children" && (/^body\.tasks\.\d+\.taskId$/.test(at) || step.endsWith("the side")),
  },
  {
    reason: "`subworkflowChanged` is always false: a parent that goes on with its children is decided at once.",
    when: fields("subworkflowChanged"),
  },
  {
    reason: "A skipped task keeps the input and output of the skip request; the real server does not read them.",
    when: (place) => place.chapter === "control" && /with a skipped task|ended without three|its tasks/.test(place.step),
  },
  {
    reason: "The inputs and outputs in summaries of searches are JSON, where the real server writes them in the manner of Java.",
    when: ({ chapter, field }) => chapter === "search" && ["input", "output", "inputSize", "outputSize"].includes(field),
  },
  {
    reason:
      "An operator that cannot be evaluated is shown as a failed task with the reason. A DYNAMIC task keeps its own name in the definition.",
    when: anyOf(
      ({ chapter }) => chapter === "operator-dynamic",
      steps("operator-dynamic-fork", "not a list, the run", "not a map, the run", "without a JOIN, the run"),
      steps("operator-fork-join", "a fork without a join", "a fork without a join, the run"),
      steps("operator-wait-human-noop", "a wrong duration at run time"),
      steps("operator-sub-workflow", "a child that does not exist"),
      steps("operator-decision", "decision_throws, the run"),
    ),
  },
  {
    reason: "Errors of jq, syntax errors of scripts and errors for thrown objects have the texts of jq and of QuickJS.",
    when: anyOf(
      steps("operator-jq", "jq_wrong, the run", "jq_syntax, the run"),
      steps("operator-inline", "thrown_value, the run"),
      steps("operator-switch-script", "define ex_switch_syntax"),
    ),
  },
  {
    reason:
      "Errors of HTTP and START_WORKFLOW tasks name no Java classes, and HTTP tasks reach only public addresses unless others are allowed.",
    when: (place) =>
      ["reasonForIncompletion", "response"].includes(place.field) &&
      anyOf(
        steps("operator-start-workflow", "text, the run", "wrong, the run", "missing, the run"),
        steps("operator-http", "no_server, the run", "an optional call, the run"),
      )(place),
  },
  {
    reason:
      "The definition of a run has its EVENT tasks as they were written; the real server adds `sink` and `asyncComplete` to their `inputParameters`.",
    when: ({ at }) => /\.inputParameters\.(sink|asyncComplete)$/.test(at),
  },
  {
    reason:
      "A DO_WHILE inside a DO_WHILE is refused when it is registered; on the real server it fails when its condition reads the inner loop.",
    when: steps("operator-nested-loops", "define lo_nested"),
  },
  {
    reason:
      "While a DO_WHILE runs it shows no output, and tasks of iterations that `keepLastN` leaves out of the output stay in the list of tasks.",
    when: (place) =>
      steps("operator-do-while", "keep, the run")(place) ||
      (["operator-do-while", "operator-nested-loops"].includes(place.chapter) &&
        /^body\.tasks\.0\.(outputData\.\w+|iteration|loopOverTask)$/.test(place.at)),
  },
  {
    reason: "Tasks of a loop or a fork begin as soon as they can, so the JOIN beside them may come earlier or later in the list.",
    when: ({ chapter, step, at }) =>
      chapter === "operator-nested-loops" && step === "loop_in_fork, the run" && at.startsWith("body.tasks."),
  },
  {
    reason:
      "The tasks of a FORK_JOIN_DYNAMIC have a `taskDefinition` also when none is registered, and a child without a version starts the newest one. A JOIN of no tasks ends at once.",
    when: (place) =>
      place.chapter === "operator-dynamic-fork" &&
      (/\.(taskDefinition|subWorkflowVersion)$/.test(place.at) ||
        ["none, the run", "no inputs, the run", "inline, the run"].includes(place.step)),
  },
  {
    reason: "An event reaches every handler of its name; the real server loses some of them, as in this script.",
    when: steps("event-handlers", "it was completed"),
  },
  {
    reason: "A child that is retried keeps its input; the real server writes the input of its parent's task into it.",
    when: ({ chapter, step, at }) => chapter === "control-retry" && step === "the child's task" && at.startsWith("body.input."),
  },
  {
    reason: "Variables that a run sets belong to the run; its definition keeps the initial values.",
    when: ({ at }) => at.startsWith("body.workflowDefinition.variables."),
  },
  {
    reason: "Searches of tasks find every new task at once, and may be limited to one run.",
    when: steps("search", "by tasks", "by tasks, v2", "tasks of a run"),
  },
  {
    reason: "The bulk search returns whole runs.",
    when: steps("bulk", "search"),
  },
  {
    reason: "Pausing and resuming a run does not change its `lastRetriedTime`.",
    when: steps("bulk", "terminated"),
  },
];
