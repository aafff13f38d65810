// The administration of the server, of its event queues and of its external storage.
import type { Chapter } from "../../../src/differential/script.ts";
import { get, operator, post, start, taskDefs, workflow, workflowDef } from "../steps.ts";

const places = ["workflow", "tasks"].flatMap((api) => [`${api}/externalstoragelocation`, `${api}/external-storage-location`]);

export const storage: Chapter = {
  name: "external-storage",
  steps: [
    ...places.map((path) => {
      const type = path.startsWith("tasks") ? "TASK_OUTPUT" : "WORKFLOW_INPUT";
      return get(`${path} write`, `/${path}?path=&operation=WRITE&payloadType=${type}`);
    }),
    get("read", "/workflow/externalstoragelocation?path=some.json&operation=READ&payloadType=WORKFLOW_INPUT"),
    get("bad operation", "/workflow/externalstoragelocation?path=&operation=NOPE&payloadType=WORKFLOW_INPUT"),
    get("bad type", "/tasks/externalstoragelocation?path=&operation=WRITE&payloadType=NOPE"),
    get("no path", "/tasks/externalstoragelocation?operation=WRITE&payloadType=TASK_INPUT"),
  ],
};

export const administration: Chapter = {
  name: "administration",
  steps: [
    taskDefs("define the task", { name: "admin_task", retryCount: 0, responseTimeoutSeconds: 60 }),
    workflowDef(
      "define",
      workflow("admin_flow", [
        { name: "admin_task", taskReferenceName: "one", type: "SIMPLE", inputParameters: { a: 1 } },
        operator("WAIT", "wait"),
        operator("HUMAN", "person"),
        operator("WAIT", "last"),
      ]),
    ),
    start("start", { name: "admin_flow" }),
    get("open tasks", "/admin/task/admin_task"),
    get("open tasks from the second", "/admin/task/admin_task?start=1&count=5"),
    get("open tasks of an unknown type", "/admin/task/no_such_task"),
    get("queues", "/admin/queues"),
    get("queues, verbose", "/admin/queues?verbose=true"),
    post("sweep", "/admin/sweep/requeue/{{wf}}"),
    post("sweep an unknown run", "/admin/sweep/requeue/no-such-run"),
    post("repair", "/admin/consistency/verifyAndRepair/{{wf}}"),
    get("queue sizes", "/queue/size"),
    get("queue names", "/queue/"),
    post("complete the task", "/tasks/{{wf}}/one/COMPLETED", { done: true }),
    get("it waits", "/workflow/{{wf}}", { until: /"taskType":"WAIT","status":"IN_PROGRESS"/ }),
    post("end the wait by a message", "/queue/update/{{wf}}/wait/COMPLETED", { m: 1 }),
    post("end the wait by a bad status", "/queue/update/{{wf}}/wait/BOGUS", { m: 1 }),
    post("end the wait by an odd status", "/queue/update/{{wf}}/wait/SCHEDULED", { m: 1 }),
    post("end by the id of an unknown task", "/queue/update/{{wf}}/task/no-such-task/COMPLETED", {}),
  ],
};
