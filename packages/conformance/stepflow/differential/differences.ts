// Where our answers differ from the real orchestrator's on purpose. Each reason is also an entry of the protocol's README.
import { isDeepStrictEqual } from "node:util";
import { type Accepted, anyOf, steps as exactSteps, fields, isError, type Place } from "../../src/differential/accepted.ts";

/** Also those that store the flow of such a step. */
const steps = (chapter: string, ...names: string[]) => exactSteps(chapter, ...names.flatMap((name) => [name, `store: ${name}`]));

/** What is diagnosed from the routes alone. */
const ofRoutes = new Set(["mockComponent", "invalidComponent"]);

function kindsOf(diagnostics: unknown): string[] {
  return Array.isArray(diagnostics) ? diagnostics.map(({ kind }: { kind: string }) => kind) : [];
}

export const differences: readonly Accepted[] = [
  {
    reason:
      "Every refusal is the error object of the API, where the real orchestrator answers some in plain text, with an empty body or as gRPC.",
    when: ({ theirs, our, reference, at, step }) =>
      isError(our) &&
      (isError(theirs) || step === "an unknown path") &&
      (at === "contentType" || (at === "body" && typeof reference === "string")),
  },
  {
    reason: "A body of the wrong shape is answered with 400 where the real orchestrator answers 422 or 415, and an unknown path with 404.",
    when: ({ at, theirs, our, step }) =>
      at === "status" && isError(our) && (theirs === 422 || theirs === 415 || step === "an unknown path"),
  },
  {
    reason: "The words of errors are ours and name what was wrong and what was expected; codes and statuses are the real orchestrator's.",
    when: ({ at, reference, ours }) =>
      /(?:error\.message|errorMessage)$/.test(at) && typeof reference === "string" && typeof ours === "string",
  },
  {
    reason: "Steps tell when they began and ended, and a start that waited tells the number of the last event.",
    when: ({ field, reference }) => reference === undefined && ["startedAt", "completedAt", "finishedAtSeqno"].includes(field),
  },
  {
    reason: "There is no `orchestratorId`: one server has all runs.",
    when: fields("orchestratorId"),
  },
  {
    reason: "A flow's id is made from the flow as it was sent; the real orchestrator writes it again first.",
    when: ({ field, chapter, step }) => field === "flowId" && (chapter === "expressions" || (chapter === "flows" && step !== "store")),
  },
  {
    reason: "A flow whose references cannot be read is diagnosed and not stored, where the real orchestrator refuses the request.",
    when: anyOf(steps("flows", "the old $from"), steps("expressions", "a negative index", "a path that is no path")),
  },
  {
    reason:
      "A variable that is required and missing, or of another type than its schema says, refuses the run; the real orchestrator lets it run.",
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
    reason: "Words, places and data of diagnostics are ours; places are written as the flow is: `$.output.$if`, not `$.output.condition`.",
    when: ({ at }) => /diagnostics\.\d+\.(?:formatted|data|path)$/.test(at),
  },
  {
    reason:
      "A flow is held against the routes when it is stored, so that mock components and components that no route takes are diagnosed; the real orchestrator does not look at them then.",
    when: ({ at, field, reference, ours }) =>
      at === "body.diagnostics.diagnostics"
        ? isDeepStrictEqual(
            kindsOf(ours).filter((kind) => !ofRoutes.has(kind)),
            kindsOf(reference),
          )
        : ["numError", "numWarning"].includes(field) && Number(ours) > Number(reference),
  },
  {
    reason: "A flow within a flow is diagnosed with it, and what built-in components answer is known, so that nothing warns of reading it.",
    when: ({ at, chapter }) => chapter === "built-ins" && /^body\.diagnostics\.(?:diagnostics|numWarning)$/.test(at),
  },
  {
    reason: "Fewer or more is diagnosed where the flow cannot be run or routed anyway.",
    when: ({ at, chapter, step }) =>
      at.startsWith("body.diagnostics.") &&
      anyOf(
        steps("diagnostics", "two steps of one id", "an empty component", "a component without a slash"),
        steps("expressions", "variables by run"),
      )({ at, chapter, step } as Place),
  },
  {
    reason: "`$coalesce` goes on to the next step when one answered null; the real orchestrator fails there.",
    when: steps("steps", "coalesce over steps"),
  },
  {
    reason: "A step that must be executed is needed, so nothing warns of it.",
    when: ({ step, at }) => /that must be executed|a failure nobody looks at/.test(step) && at.startsWith("body.diagnostics"),
  },
  {
    reason:
      "What a built-in component cannot do is COMPONENT_FAILED or INVALID_INPUT, and one that there is not COMPONENT_NOT_FOUND; the real orchestrator calls the first UNREACHABLE and tries it again.",
    when: ({ chapter, field, reference }) => field === "errorCode" && (chapter === "built-ins" ? reference === 5 : reference === 9),
  },
  {
    reason: "A number of a flow that is whole stays whole, so a blob made of it has another id.",
    when: steps("built-ins", "put_blob, then get_blob"),
  },
  {
    reason: "Failures of sub-flows carry the data of their error.",
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
    reason: "Events may be chosen by one type; the real orchestrator takes none by REST.",
    when: steps("runs", "events of one type"),
  },
  {
    reason: "A run that was deleted is gone; the real orchestrator keeps it.",
    when: steps("runs", "read what was deleted"),
  },
  {
    reason: "A run's id need not be a UUID, because other protocols name runs too: one that is none is not found.",
    when: steps("refused-runs", "a bad run id", "cancel by a bad id"),
  },
  {
    reason: "Items and steps of a run that is not there are not found, where the real orchestrator answers an empty list.",
    when: steps("refused-runs", "items of an unknown run", "steps of an unknown run"),
  },
  {
    reason: "An empty map of overrides changes nothing.",
    when: steps("overrides", "an empty map"),
  },
];
