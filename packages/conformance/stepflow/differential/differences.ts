// Where our responses differ from the real orchestrator's on purpose. Each reason is also an entry of the protocol's README.
import { isDeepStrictEqual } from "node:util";
import { type Accepted, anyOf, steps as exactSteps, fields, isError, type Place } from "../../src/differential/accepted.ts";

/** Also the steps that store the flow of such a step. */
const steps = (chapter: string, ...names: string[]) => exactSteps(chapter, ...names.flatMap((name) => [name, `store: ${name}`]));

/** Problems that can be found from the routes alone. */
const ofRoutes = new Set(["mockComponent", "invalidComponent"]);

function kindsOf(diagnostics: unknown): string[] {
  return Array.isArray(diagnostics) ? diagnostics.map(({ kind }: { kind: string }) => kind) : [];
}

export const differences: readonly Accepted[] = [
  {
    reason: "Every refusal is the error object of the API; the real orchestrator sends some as plain text, with an empty body or as gRPC.",
    when: ({ theirs, our, reference, at, step }) =>
      isError(our) &&
      (isError(theirs) || step === "an unknown path") &&
      (at === "contentType" || (at === "body" && typeof reference === "string")),
  },
  {
    reason: "A body of the wrong shape is refused with 400 where the real orchestrator returns 422 or 415, and an unknown path with 404.",
    when: ({ at, theirs, our, step }) =>
      at === "status" && isError(our) && (theirs === 422 || theirs === 415 || step === "an unknown path"),
  },
  {
    reason:
      "The texts of errors are ours and name what was wrong and what was expected; codes and statuses are those of the real orchestrator. One text is also that of the real orchestrator, because tests of flows compare it: the error of a mock component that has no answer for its input.",
    when: ({ at, reference, ours }) =>
      /(?:error\.message|errorMessage)$/.test(at) && typeof reference === "string" && typeof ours === "string",
  },
  {
    reason: "Steps have the times of their beginning and end, and the answer to a start with `wait` has the number of the last event.",
    when: ({ field, reference }) => reference === undefined && ["startedAt", "completedAt", "finishedAtSeqno"].includes(field),
  },
  {
    reason: "There is no `orchestratorId`: one server has all runs.",
    when: fields("orchestratorId"),
  },
  {
    reason:
      "A flow's id is computed from the flow as it was sent; the real orchestrator writes the flow again first. A flow from a file of `longshore define` has the id of that definition, and the API accepts this id too.",
    when: ({ field, chapter, step }) => field === "flowId" && (chapter === "expressions" || (chapter === "flows" && step !== "store")),
  },
  {
    reason:
      "For a flow whose references cannot be read, the answer has diagnostics and the flow is not stored; the real orchestrator refuses the request.",
    when: anyOf(steps("flows", "the old $from"), steps("expressions", "a negative index", "a path that is no path")),
  },
  {
    reason:
      "A run is refused when a required variable is missing or a variable has another type than in its schema; the real orchestrator starts it.",
    when: steps("diagnostics", "the required variable is missing", "a value of another type"),
  },
  {
    reason: "Variables are shown with their schema and description, and with a default only where they have one.",
    when: ({ step, at }) => step === "the variables of it" && /\.(?:schema|description|defaultValue)$/.test(at),
  },
  {
    reason:
      "A path that does not begin with `$` is the name of one field, as the flow language's description says; the real orchestrator splits it at dots and brackets, also in quotes.",
    when: steps(
      "expressions",
      "a field with a dot",
      "a quoted key with a dot",
      "a dot between fields",
      "a field that looks like an element",
    ),
  },
  {
    reason:
      "Texts, paths and data of diagnostics are ours. Paths use the names that the flow uses: `$.output.$if`, not `$.output.condition`.",
    when: ({ at }) => /diagnostics\.\d+\.(?:formatted|data|path)$/.test(at),
  },
  {
    reason:
      "A flow is compared with the routes when it is stored, so the diagnostics name mock components and components without a route. The real orchestrator does not check them at this time.",
    when: ({ at, field, reference, ours }) =>
      at === "body.diagnostics.diagnostics"
        ? isDeepStrictEqual(
            kindsOf(ours).filter((kind) => !ofRoutes.has(kind)),
            kindsOf(reference),
          )
        : ["numError", "numWarning"].includes(field) && Number(ours) > Number(reference),
  },
  {
    reason:
      "The diagnostics cover flows inside the flow. The server knows the output of built-in components, so reading from it causes no warning.",
    when: ({ at, chapter }) => chapter === "built-ins" && /^body\.diagnostics\.(?:diagnostics|numWarning)$/.test(at),
  },
  {
    reason: "For a flow that cannot be run or routed, the number of diagnostics may differ.",
    when: ({ at, chapter, step }) =>
      at.startsWith("body.diagnostics.") &&
      anyOf(
        steps("diagnostics", "two steps of one id", "an empty component", "a component without a slash"),
        steps("expressions", "variables by run"),
      )({ at, chapter, step } as Place),
  },
  {
    reason: "`$coalesce` takes the next step when one has returned null; the real orchestrator fails.",
    when: steps("steps", "coalesce over steps"),
  },
  {
    reason: "A step that must be executed counts as used, so there is no warning about it.",
    when: ({ step, at }) => /that must be executed|a failure nobody looks at/.test(step) && at.startsWith("body.diagnostics"),
  },
  {
    reason:
      "A built-in component that cannot do its work fails with COMPONENT_FAILED or INVALID_INPUT; the real orchestrator reports UNREACHABLE and tries again. A built-in component that does not exist fails with COMPONENT_NOT_FOUND.",
    when: ({ chapter, field, reference }) => field === "errorCode" && (chapter === "built-ins" ? reference === 5 : reference === 9),
  },
  {
    reason: "A whole number in a flow stays a whole number, so a blob that contains it has another id.",
    when: steps("built-ins", "put_blob, then get_blob"),
  },
  {
    reason: "Failures of sub-flows have the data of their error.",
    when: ({ at }) => at.endsWith("error.data"),
  },
  {
    reason: "Descriptions of built-in components are ours.",
    when: ({ step, field }) => step === "components without schemas" && field === "description",
  },
  {
    reason: "An iteration that gives neither `result` nor `next` is COMPONENT_FAILED.",
    when: steps("built-ins", "iterate over something else"),
  },
  {
    reason: "Events may be filtered by one type; by REST the real orchestrator accepts no type.",
    when: steps("runs", "events of one type"),
  },
  {
    reason: "A deleted run no longer exists; the real orchestrator keeps it.",
    when: steps("runs", "read what was deleted"),
  },
  {
    reason:
      'A run\'s id may have another form than a UUID, because runs of other protocols have other ids. An id that is not a UUID is therefore refused with "not found" when no run has it.',
    when: steps("refused-runs", "a bad run id", "cancel by a bad id"),
  },
  {
    reason: 'For items and steps of a run that does not exist, the reply is "not found"; the real orchestrator returns an empty list.',
    when: steps("refused-runs", "items of an unknown run", "steps of an unknown run"),
  },
  {
    reason: "An empty map of overrides changes nothing.",
    when: steps("overrides", "an empty map"),
  },
];
