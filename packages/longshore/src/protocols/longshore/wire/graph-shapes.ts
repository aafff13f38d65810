// The graph and the timeline of a run, as columns. For a run of 10,000 steps, they take a quarter of the bytes of a list of objects.

import { z } from "zod";
import { runStates } from "./shapes.ts";

const whole = z.number().int();
const maybeText = z.array(z.string().nullable());

export const runGraphShape = z
  .object({
    runId: z.string(),
    definitionId: z.string(),
    workflow: z.string(),
    dialect: z.string(),
    isFunction: z.boolean().describe("True for a durable function: its nodes are the commands that it has given so far."),
    nodes: z.array(whole).describe("The number of each node in its run. A task of the node has the id `<run id>.<number>`."),
    ids: z.array(z.string()).describe("The ids of the steps."),
    kinds: z.array(z.enum(["task", "run", "instant", "join", "wait", "end"])),
    lanes: maybeText.describe("The names that workers claim."),
    workflows: maybeText.describe("The workflows that nodes of the kind `run` start, where the definition names them."),
    groups: z.array(whole.nullable()).describe("The innermost group of each node: a place in `groupList`."),
    commands: maybeText.optional().describe("Only for a durable function: kind and name of each command, such as `step price`."),
    groupList: z
      .array(
        z.object({
          label: z.string().describe("The case that was chosen, or the first step of the branch."),
          of: whole.nullable().describe("The place of the node that starts or chooses the branch."),
          parent: whole.nullable().describe("The group around this one."),
        }),
      )
      .describe("Branches: groups of nodes that can be shown as one node."),
    edges: z.array(z.tuple([whole, whole])).describe("From and to, as places in the columns of nodes."),
    edgeKinds: z
      .array(z.enum(["after", "starts", "case", "first-part", "threshold"]))
      .describe(
        "`after`: the first node must end before the second starts. `starts`: the first starts the second. `case`: the first chooses the second. `first-part`: the first part of the first is enough. `threshold`: some of the nodes before the second are enough.",
      ),
    edgeLabels: maybeText.describe("For `case`, its name. For `threshold`, how many nodes are enough."),
    isCut: z.boolean().describe("True when there are too many edges: the rest is left out."),
  })
  .meta({ id: "RunGraph" });

const times = (text: string) => z.array(whole.nullable()).describe(text);

export const runTimelineShape = z
  .object({
    runId: z.string(),
    state: z.enum(runStates),
    t0: whole.describe("When the run was created. All times of `attempts` are milliseconds after it."),
    now: whole.nullable().describe("The clock of the server; null for a run that has ended."),
    endedAt: whole.nullable(),
    retries: whole.describe("How often the run was tried again after its end."),
    states: z.array(z.string()).describe("The names for `attempts.state`."),
    verbs: z.array(z.string()).describe("The names for `attempts.closedBy`."),
    holders: z.array(z.string()).describe("The names for `attempts.holder`."),
    attempts: z
      .object({
        step: z.array(whole).describe("The number of the node, as in `nodes` of the graph."),
        attempt: z.array(whole).describe("From 1. A deferred attempt has an entry for each hold."),
        state: times("The state of the step: a place in `states`. Null for an earlier attempt."),
        queued: z.array(whole),
        due: times("How long after `queued` it could be taken; null when at once."),
        start: times("When a worker took it."),
        end: times("When it ended; null while it is open."),
        closedBy: times("The verb that ended it: a place in `verbs`."),
        holder: times("A place in `holders`."),
      })
      .describe("Columns of the same length."),
    next: z.string().nullable().describe("The `after` of the next page."),
  })
  .meta({ id: "RunTimeline" });
