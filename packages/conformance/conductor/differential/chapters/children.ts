// What becomes of children and of the tasks beside them when one of them, or their parent, begins again after the end.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { del, get, operator, post, quick, reaches, run, runUntil, simple, start, taskDefs, workflow, workflowDef } from "../steps.ts";

const TYPE = "children_task";
const sub = (ref: string) =>
  operator("SUB_WORKFLOW", ref, { inputParameters: { k: 1 }, subWorkflowParam: { name: "children_inner", version: 1 } });
const forked = [
  operator("FORK_JOIN", "fork", { forkTasks: [[sub("left")], [sub("right")], [simple(TYPE, "side")]] }),
  operator("JOIN", "join", { joinOn: ["left", "right", "side"] }),
  simple(TYPE, "last"),
];
const done = (name: string, wf: string, ref: string): Step => post(name, `/tasks/{{${wf}}}/${ref}/COMPLETED`, { done: ref });
const childOf = (name: string, at: number, as: string): Step =>
  get(name, "/workflow/{{parent}}", {
    until: /"referenceTaskName":"left".*"subWorkflowId":"[^"]+".*"referenceTaskName":"right".*"subWorkflowId":"[^"]+"/,
    keep: { [as]: `tasks.${at}.subWorkflowId` },
  });
/** Both children are at their second task. */
const begun = (story: string): Step[] => [
  start(`${story}: start`, { name: "children_outer" }, "parent"),
  childOf(`${story}: the left child`, 1, "left"),
  childOf(`${story}: the right child`, 2, "right"),
  runUntil(`${story}: the left child has begun`, /"referenceTaskName":"one"/, "left"),
  runUntil(`${story}: the right child has begun`, /"referenceTaskName":"one"/, "right"),
  done(`${story}: one of the left child`, "left", "one"),
  done(`${story}: one of the right child`, "right", "one"),
  runUntil(`${story}: the left child goes on`, /"referenceTaskName":"two"/, "left"),
  runUntil(`${story}: the right child goes on`, /"referenceTaskName":"two"/, "right"),
];
const failed = (story: string): Step[] => [
  post(`${story}: the left child fails`, "/tasks/{{left}}/two/FAILED_WITH_TERMINAL_ERROR", {}),
  reaches(`${story}: the parent fails`, "FAILED", "parent"),
  reaches(`${story}: the right child ends`, "TERMINATED", "right"),
];
const goesOn = (story: string): Step[] => [
  reaches(`${story}: the right child runs again`, "RUNNING", "right"),
  runUntil(
    `${story}: the parent runs again`,
    /"status":"RUNNING".*"referenceTaskName":"side"[^}]*|"status":"SCHEDULED".*"referenceTaskName":"side"/,
    "parent",
  ),
  run(`${story}: the left child again`, "left"),
  run(`${story}: the right child again`, "right"),
];
const completes = (story: string): Step[] => [
  done(`${story}: two of the left child`, "left", "two"),
  done(`${story}: two of the right child`, "right", "two"),
  done(`${story}: the side`, "parent", "side"),
  runUntil(`${story}: last is scheduled`, /"referenceTaskName":"last"/, "parent"),
  done(`${story}: last`, "parent", "last"),
  reaches(`${story}: the parent completes`, "COMPLETED", "parent"),
];

export const children: Chapter = {
  name: "control-children",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    workflowDef("define the child", workflow("children_inner", [simple(TYPE, "one"), simple(TYPE, "two")])),
    workflowDef("define the parent", workflow("children_outer", forked)),
    ...begun("retry"),
    ...failed("retry"),
    post("retry: the left child is retried", "/workflow/{{left}}/retry"),
    ...goesOn("retry"),
    ...completes("retry"),
    ...begun("resume"),
    del("resume: the parent is terminated", "/workflow/{{parent}}?reason=enough"),
    reaches("resume: the left child ends", "TERMINATED", "left"),
    reaches("resume: the right child ends", "TERMINATED", "right"),
    post("resume: the parent is retried with its children", "/workflow/{{parent}}/retry?resumeSubworkflowTasks=true"),
    ...goesOn("resume"),
    ...completes("resume"),
    ...begun("rerun"),
    ...failed("rerun"),
    get("rerun: the failed task", "/workflow/{{parent}}", { keep: { task: "tasks.1.taskId" } }),
    post("rerun: from the task of the left child", "/workflow/{{parent}}/rerun", { reRunFromTaskId: "{{task}}" }),
    runUntil(
      "rerun: both have new children",
      /"status":"IN_PROGRESS"[^{]*\{.*"referenceTaskName":"left".*"status":"IN_PROGRESS"[^{]*\{.*"referenceTaskName":"right".*"referenceTaskName":"side"/,
      "parent",
    ),
  ],
};
