// A worker as a user writes one without the command line: handlers and the address of a workflow-graph server.
import { work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";
import { tasks } from "./handlers.mjs";

await work({ tasks, on: workflowGraph(process.env.SERVER_URL) });
