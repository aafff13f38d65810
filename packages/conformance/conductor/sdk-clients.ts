// Types for the clients of the official JavaScript SDK, as far as the tests use them. The SDK is fetched at run time and is not a dependency,
// so the compiler cannot see the SDK's own types.
import { createRequire } from "node:module";
import { join } from "node:path";
import { javascriptSdk } from "./fetch.ts";

type Plain = Record<string, unknown>;

interface Run {
  workflowId: string;
  status: string;
  correlationId?: string;
  priority?: number;
  reasonForIncompletion?: string;
  output: Plain;
  tasks: { taskId: string; status: string; referenceTaskName: string }[];
}

interface WorkflowClient {
  registerWorkflow(override: boolean, definition: Plain): Promise<void>;
  startWorkflow(request: Plain): Promise<string>;
  startWorkflowByName(name: string, input: Plain, version?: number, correlationId?: string, priority?: number): Promise<string>;
  executeWorkflow(request: Plain, name: string, version: number, requestId: string, waitUntil?: string): Promise<Plain>;
  getWorkflow(id: string, includeTasks: boolean): Promise<Run>;
  getWorkflowStatus(id: string, includeOutput: boolean, includeVariables: boolean): Promise<Plain>;
  getExecution(id: string, includeTasks?: boolean): Promise<Run>;
  pause(id: string): Promise<void>;
  resume(id: string): Promise<void>;
  terminate(id: string, reason: string): Promise<void>;
  restart(id: string, latest: boolean): Promise<void>;
  retry(id: string, resumeSubWorkflows: boolean): Promise<void>;
  reRun(id: string, request?: Plain): Promise<string>;
  skipTasksFromWorkflow(id: string, reference: string, request: Plain): Promise<void>;
  search(start: number, size: number, query: string, freeText: string, sort?: string): Promise<{ totalHits: number; results: Run[] }>;
  updateTask(taskId: string, id: string, status: string, output: Plain): Promise<string>;
  updateTaskByRefName(reference: string, id: string, status: string, output: Plain): Promise<string>;
  updateTaskSync(reference: string, id: string, status: string, output: Plain): Promise<Run>;
  signal(id: string, status: string, output: Plain, strategy?: string): Promise<Plain>;
  signalAsync(id: string, status: string, output: Plain): Promise<void>;
  getTask(taskId: string): Promise<{ taskId: string }>;
}

interface MetadataClient {
  registerTask(definition: Plain): Promise<void>;
  registerTasks(definitions: Plain[]): Promise<void>;
  updateTask(definition: Plain): Promise<void>;
  getTask(name: string): Promise<Plain>;
  getAllTaskDefs(): Promise<Plain[]>;
  unregisterTask(name: string): Promise<void>;
  registerWorkflowDef(definition: Plain, overwrite?: boolean): Promise<void>;
  getWorkflowDef(name: string, version?: number): Promise<Plain>;
  getAllWorkflowDefs(): Promise<Plain[]>;
  unregisterWorkflow(name: string, version?: number): Promise<void>;
}

interface TaskClient {
  getTask(id: string): Promise<{ taskId: string }>;
  search(start: number, size: number, sort: string, freeText: string, query: string): Promise<{ totalHits: number; results: Plain[] }>;
  updateTaskResult(id: string, reference: string, status: string, output: Plain): Promise<string>;
  addTaskLog(id: string, message: string): Promise<void>;
  getTaskLogs(id: string): Promise<{ log: string }[]>;
  getQueueSizeForTask(types: string[]): Promise<Record<string, number>>;
  getTaskPollData(type: string): Promise<{ queueName: string }[]>;
}

export interface SdkClients {
  workflows: WorkflowClient;
  metadata: MetadataClient;
  tasks: TaskClient;
}

export async function sdkClients(serverUrl: string): Promise<SdkClients> {
  const require = createRequire(join(javascriptSdk(), "package.json"));
  const { OrkesClients } = require("@io-orkes/conductor-javascript") as {
    OrkesClients: {
      from(config: { serverUrl: string }): Promise<{
        getWorkflowClient(): WorkflowClient;
        getMetadataClient(): MetadataClient;
        getTaskClient(): TaskClient;
      }>;
    };
  };
  const clients = await OrkesClients.from({ serverUrl });
  return { workflows: clients.getWorkflowClient(), metadata: clients.getMetadataClient(), tasks: clients.getTaskClient() };
}
