import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTaskDef, parseTaskDefs } from "./task-def.ts";
import type { Violation } from "./violation.ts";
import { nestingMax, parseWorkflowDef, parseWorkflowDefs, tasksMax } from "./workflow-def.ts";

const task = (name: string, more: object = {}) => ({ name, taskReferenceName: name, type: "SIMPLE", ...more });
const workflow = (...tasks: object[]) => ({ name: "w", tasks });
const at = "registerWorkflowDef.arg0";

function violationsOf(source: unknown): readonly Violation[] {
  const checked = parseWorkflowDef(source, at);
  return "violations" in checked ? checked.violations : [];
}
const messages = (source: unknown) => violationsOf(source).map(({ message }) => message);
function taskDefFaults(source: unknown): readonly Violation[] {
  const checked = parseTaskDefs(source, "registerTaskDef.arg0");
  return "violations" in checked ? checked.violations : [];
}

describe("task definitions", () => {
  it("[C1] get Conductor's defaults", () => {
    expect(parseTaskDef({ name: "t1" }, "a")).toEqual({
      value: {
        createTime: 0,
        updateTime: 0,
        name: "t1",
        retryCount: 3,
        timeoutSeconds: 0,
        inputKeys: [],
        outputKeys: [],
        runtimeMetadata: [],
        timeoutPolicy: "TIME_OUT_WF",
        retryLogic: "FIXED",
        retryDelaySeconds: 60,
        responseTimeoutSeconds: 3_600,
        inputTemplate: {},
        rateLimitPerFrequency: 0,
        rateLimitFrequencyInSeconds: 1,
        backoffScaleFactor: 1,
        maxRetryDelaySeconds: 0,
        backoffJitterMs: 0,
        totalTimeoutSeconds: 0,
        taskStatusListenerEnabled: true,
        enforceSchema: false,
      },
    });
  });

  it("keep their fields, known or not, and drop null values", () => {
    const given = { name: "t1", retryCount: 0, ownerEmail: "not-an-email", description: null, colour: { blue: [1] } };
    expect(parseTaskDef(given, "a")).toMatchObject({ value: { retryCount: 0, ownerEmail: "not-an-email", colour: { blue: [1] } } });
    expect(parseTaskDef(given, "a")).not.toHaveProperty("value.description");
  });

  it("accept numbers written as texts, and read null as 0", () => {
    expect(parseTaskDef({ name: 7, retryCount: "2", retryDelaySeconds: null, enforceSchema: "true" }, "a")).toMatchObject({
      value: { name: "7", retryCount: 2, retryDelaySeconds: 0, enforceSchema: true },
    });
  });

  it("are refused with Conductor's own messages", () => {
    const path = "registerTaskDef.arg0[0]";
    expect(taskDefFaults([{}])).toEqual([{ path: `${path}.name`, message: "TaskDef name cannot be null or empty" }]);
    expect(taskDefFaults([{ name: "" }])).toEqual([
      { path: `${path}.name`, message: "TaskDef name cannot be null or empty", invalidValue: "" },
    ]);
    expect(taskDefFaults([{ name: "bad1", timeoutSeconds: 5, responseTimeoutSeconds: 10 }])).toEqual([
      { path, message: "TaskDef: bad1 responseTimeoutSeconds: 10 must be less than timeoutSeconds: 5" },
    ]);
    expect(taskDefFaults([{ name: "t", responseTimeoutSeconds: 0 }])).toEqual([
      {
        path: `${path}.responseTimeoutSeconds`,
        message: "TaskDef responseTimeoutSeconds: 0 should be minimum 1 second",
        invalidValue: "0",
      },
    ]);
    expect(taskDefFaults([{ name: "t", retryCount: -1 }])).toEqual([
      { path: `${path}.retryCount`, message: "TaskDef retryCount: 0 must be >= 0", invalidValue: "-1" },
    ]);
    expect(taskDefFaults([{ name: "t", timeoutSeconds: 5000, totalTimeoutSeconds: 9 }])[0]?.message).toBe(
      "TaskDef: t timeoutSeconds: 5000 must be less than or equal to totalTimeoutSeconds: 9",
    );
    expect(taskDefFaults([])).toEqual([{ path: "registerTaskDef.arg0", message: "TaskDefList is empty" }]);
  });

  it("are refused with field and value when a type is wrong", () => {
    expect(taskDefFaults([{ name: "t" }, { name: "u", retryLogic: "NOPE" }])).toEqual([
      {
        path: "registerTaskDef.arg0[1].retryLogic",
        message: "must be one of FIXED, EXPONENTIAL_BACKOFF, LINEAR_BACKOFF",
        invalidValue: "NOPE",
      },
    ]);
    expect(taskDefFaults({ name: "t" })).toHaveLength(1);
    expect(taskDefFaults([{ name: "t", retryCount: {}, inputTemplate: [], inputKeys: [1], timeoutSeconds: 1e300 }])).toHaveLength(4);
    expect(taskDefFaults([7])).toHaveLength(1);
    expect(taskDefFaults([{ name: "x".repeat(256) }])).toHaveLength(1);
    expect(taskDefFaults([{ name: "a\nb" }])).toHaveLength(1);
  });
});

describe("workflow definitions", () => {
  it("[C2] get Conductor's defaults, also in their tasks, and keep unknown fields", () => {
    const checked = parseWorkflowDef({ ...workflow({ name: "t", taskReferenceName: "r", mine: 1 }), more: { x: null } }, at);
    expect(checked).toEqual({
      value: {
        createTime: 0,
        updateTime: 0,
        name: "w",
        version: 1,
        tasks: [
          {
            name: "t",
            taskReferenceName: "r",
            inputParameters: {},
            type: "SIMPLE",
            decisionCases: {},
            defaultCase: [],
            forkTasks: [],
            startDelay: 0,
            joinOn: [],
            optional: false,
            permissive: false,
            defaultExclusiveJoinTask: [],
            asyncComplete: false,
            loopOver: [],
            onStateChange: {},
            metadata: {},
            mine: 1,
          },
        ],
        inputParameters: [],
        outputParameters: {},
        schemaVersion: 2,
        restartable: true,
        workflowStatusListenerEnabled: false,
        timeoutPolicy: "ALERT_ONLY",
        timeoutSeconds: 0,
        variables: {},
        inputTemplate: {},
        enforceSchema: true,
        metadata: {},
        maskedFields: [],
        more: { x: null },
      },
    });
  });

  it("[C16] are refused without name and tasks", () => {
    expect(violationsOf({})).toEqual([
      { path: `${at}.name`, message: "WorkflowDef name cannot be null or empty" },
      { path: `${at}.tasks`, message: "WorkflowTask list cannot be empty" },
    ]);
    expect(parseWorkflowDef({ name: "w" }, at, { mayBeEmpty: true })).toHaveProperty("value");
  });

  it("[C18] are refused when a reference is used twice, at any depth", () => {
    const inner = { type: "SWITCH", evaluatorType: "value-param", expression: "x", decisionCases: { a: [task("twice")] } };
    expect(violationsOf(workflow(task("s", inner), task("twice")))).toEqual([
      { path: at, message: "taskReferenceName: twice should be unique across tasks for a given workflowDefinition: w" },
    ]);
  });

  it("[C19] are refused when a task at the top reads an unknown task or an invalid path", () => {
    expect(messages(workflow(task("a", { inputParameters: { p: "${nope.output.x}" } })))).toEqual([
      "taskReferenceName: nope for given task: a input value: p of input parameter: ${nope.output.x} is not defined in workflow definition.",
    ]);
    expect(messages(workflow(task("a", { inputParameters: { p: [{ q: "${a b}" }] } })))).toEqual([
      "key: q input parameter value: a b is not valid",
    ]);
    expect(messages(workflow(task("a", { inputParameters: { p: "${}" } })))).toEqual(["key: p input parameter value:  is not valid"]);
    const fine = { p: "${workflow.input.x} ${b.output.y} ${CPEWF_TASK_ID} ${workflow.secrets.s} $${nope.x}" };
    expect(messages(workflow(task("a", { inputParameters: fine }), task("b")))).toEqual([]);
  });

  it("are refused with the field that a type of task requires", () => {
    expect(messages(workflow(task("s", { type: "SWITCH" })))).toEqual([
      "evaluatorType field is required for taskType: SWITCH taskName: s",
      "decisionCases should have atleast one task for taskType: SWITCH taskName: s",
    ]);
    expect(messages(workflow(task("d", { type: "DYNAMIC" })))).toEqual([
      "dynamicTaskNameParam field is required for taskType: DYNAMIC taskName: d",
    ]);
    expect(messages(workflow(task("f", { type: "FORK_JOIN", forkTasks: [] })))).toEqual([
      "forkTasks should have atleast one task for taskType: FORK_JOIN taskName: f",
    ]);
    expect(messages(workflow(task("s", { type: "SUB_WORKFLOW" })))).toEqual([
      "subWorkflowParam field is required for taskType: SUB_WORKFLOW taskName: s",
    ]);
    expect(messages(workflow(task("e", { type: "TERMINATE", optional: true })))).toEqual([
      "terminate task cannot be optional, taskName: e",
      "terminate task must have an terminationStatus parameter and must be set to COMPLETED or FAILED, taskName: e",
    ]);
    expect(messages(workflow(task("w", { type: "WAIT", inputParameters: { duration: "1 s", until: "2026-01-01" } })))).toEqual([
      "Both 'duration' and 'until' specified. Please provide only one input",
    ]);
    expect(messages(workflow(task("w", { type: "WAIT", inputParameters: { until: "some day" } })))).toEqual(["Unable to parse date "]);
    expect(messages(workflow(task("w", { type: "WAIT", inputParameters: { until: "${workflow.input.u}" } })))).toEqual([]);
    expect(messages(workflow(task("d", { type: "DECISION", decisionCases: { a: [] } })))).toEqual([
      "caseValueParam or caseExpression field is required for taskType: DECISION taskName: d",
    ]);
    expect(messages(workflow(task("j", { type: "JSON_JQ_TRANSFORM" })))).toEqual([
      "queryExpression field is required for taskType: JSON_JQ_TRANSFORM taskName: j",
    ]);
    expect(messages(workflow(task("s", { type: "SUB_WORKFLOW", subWorkflowParam: {} })))).toContain(
      "SubWorkflowParams name cannot be null",
    );
  });

  it("are refused with the operator and the task when an operator is not supported", () => {
    for (const type of ["JDBC", "PULL_WORKFLOW_MESSAGES", "KAFKA_PUBLISH"])
      expect(messages(workflow(task("x", { type, taskReferenceName: "ref" })))).toEqual([
        `${type} is not supported by this server, taskReferenceName: ref`,
      ]);
    const script = { type: "SWITCH", evaluatorType: "python", expression: "$.x", decisionCases: { a: [] } };
    expect(messages(workflow(task("s", script)))[0]).toMatch(/evaluatorType python is not supported.*taskReferenceName: s/);
    expect(messages(workflow(task("e", { type: "EVENT", sink: "sqs:q" })))[0]).toMatch(/sqs:q.*is not supported.*taskReferenceName: e/);
    expect(messages(workflow(task("m", { type: "LLM_CHAT_COMPLETE" })))).toEqual([]);
    const inner = { type: "DO_WHILE", loopCondition: "true", loopOver: [task("a")] };
    expect(messages(workflow(task("o", { type: "DO_WHILE", loopCondition: "true", loopOver: [task("i", inner)] })))).toEqual([
      "DO_WHILE i inside DO_WHILE o is not supported by this server: put it into a SUB_WORKFLOW",
    ]);
    expect(messages(workflow(task("l", { type: "DO_WHILE" })))).toEqual([
      "loopCondition field is required for taskType: DO_WHILE taskName: l",
      "loopOver field is required for taskType: DO_WHILE taskName: l",
    ]);
    expect(messages(workflow(task("f", { type: "FORK_JOIN_DYNAMIC" })))).toEqual([
      "dynamicForkTasksParam field is required for taskType: FORK_JOIN_DYNAMIC taskName: f",
      "dynamicForkTasksInputParamName field is required for taskType: FORK_JOIN_DYNAMIC taskName: f",
    ]);
    const inline = { type: "INLINE", inputParameters: { evaluatorType: "python", expression: "1" } };
    expect(messages(workflow(task("i", inline)))[0]).toMatch(/evaluatorType python is not supported.*taskReferenceName: i/);
  });

  it("are refused with the path of a mistake inside branches and inline definitions", () => {
    const inner = workflow(task("x", { type: "JDBC" }));
    const fork = task("f", { type: "FORK_JOIN", forkTasks: [[task("a"), { name: "b" }]] });
    const child = task("c", { type: "SUB_WORKFLOW", subWorkflowParam: { name: "k", workflowDefinition: inner } });
    expect(violationsOf(workflow(fork, task("j", { type: "JOIN", joinOn: ["a"] }), child)).map(({ path }) => path)).toEqual([
      `${at}.tasks[2].subWorkflowParam.workflowDefinition.tasks[0]`,
    ]);
    expect(violationsOf(workflow(fork, task("j", { type: "JOIN", joinOn: ["a"] }))).map(({ path }) => path)).toEqual([
      `${at}.tasks[0].forkTasks[0][1].taskReferenceName`,
    ]);
  });

  it("treat any other type as a worker's own type", () => {
    expect(messages(workflow(task("x", { type: "my_queue" })))).toEqual([]);
  });

  it("are refused when a JOIN waits for an unknown task", () => {
    expect(messages(workflow(task("a"), task("j", { type: "JOIN", joinOn: ["a", "ghost"] })))).toEqual([
      "JOIN j joins on ghost, which is not a task of this definition",
    ]);
  });

  it("are refused when tasks wait for each other", () => {
    const join = task("j", { type: "JOIN", joinOn: ["later"] });
    expect(messages(workflow(task("a"), join, task("later")))).toEqual([expect.stringMatching(/waits in a circle: .*j.*later/)]);
  });

  it("are refused when they are too deep or have too many tasks", () => {
    let deep: object = task("leaf");
    for (let level = 0; level < nestingMax + 5; level++)
      deep = task(`s${level}`, { type: "SWITCH", evaluatorType: "value-param", expression: "x", decisionCases: { a: [deep] } });
    expect(messages(workflow(deep))).toEqual([expect.stringMatching(/deeper than/)]);
    const many = Array.from({ length: tasksMax + 10 }, (_, index) => task(`t${index}`));
    expect(messages(workflow(...many))).toEqual([expect.stringMatching(/one task more than/)]);
  });

  it("are accepted or refused one by one in a list", () => {
    const parsed = parseWorkflowDefs([workflow(task("a")), {}], "updateWorkflowDef.arg0");
    expect(parsed).toMatchObject({ list: [{ value: { name: "w" } }, { violations: [{ path: "updateWorkflowDef.arg0[1].name" }, {}] }] });
    expect(parseWorkflowDefs([], "p")).toHaveProperty("violations");
    expect(parseWorkflowDefs({}, "p")).toHaveProperty("violations");
  });

  it("never make the reader throw, for any content", () => {
    const fields = ["name", "tasks", "type", "taskReferenceName", "forkTasks", "decisionCases", "subWorkflowParam", "inputParameters"];
    const value = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, 1, "SWITCH", "FORK_JOIN", "JOIN", "${a.b}", "x", true, -1),
        fc.array(tie("node"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...fields), tie("node"), { maxKeys: 5 }),
      ),
    })).node;
    fc.assert(
      fc.property(value, (source) => {
        const checked = parseWorkflowDef(source, at);
        if ("value" in checked) expect(parseWorkflowDef(checked.value, at)).toEqual(checked);
        else expect(checked.violations.length).toBeGreaterThan(0);
      }),
      { numRuns: 1_000 },
    );
  });
});
