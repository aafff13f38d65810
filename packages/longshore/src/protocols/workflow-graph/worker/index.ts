// The worker half of workflow-graph, published as `longshore/workflow-graph`.

export type { WorkflowGraphOptions } from "./options.ts";
export { workflowGraph } from "./worker.ts";
