// A run as one HTML file: the pages and the answers of the API that they read. It opens without a server and sends no requests.

import { call, query } from "../core/api.ts";
import { type ExportedData, exportFiles, serverUrl } from "../core/place.ts";
import type { Journal, LogChunk, Page, Run, RunGraph, RunTimeline, Step } from "../core/shapes.ts";
import { historyPath } from "./history-pane.tsx";
import { redact } from "./redact.ts";
import { stepsPage } from "./run-data.ts";

/** Answers that are left out are named in the file, and a read of them fails. */
const pagesMax = 100;
const tasksMax = 500;

/** What an export contains, before anything is taken out. */
export interface RunExport {
  readonly data: ExportedData;
  readonly workflow: string;
  readonly script: string;
  readonly style: string;
}

export interface ExportFile {
  readonly html: string;
  /** How many values were taken out. */
  readonly leftOut: number;
}

/** The file, without the values that `names` names. */
export function exportFile({ data, workflow, script, style }: RunExport, names: string): ExportFile {
  const { json, count } = redact(data, names);
  return { html: pageOf(json, script, style, workflow), leftOut: count };
}

export function saveExport({ data: { run }, workflow }: RunExport, html: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  link.download = `${workflow.replace(/[^\w-]+/g, "-")}-${run}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export async function readExport(run: Run): Promise<RunExport> {
  const path = `/runs/${encodeURIComponent(run.id)}`;
  const answers: Record<string, unknown> = { [path]: await call<Run>(path) };
  const graph = await call<RunGraph>(`${path}/graph`);
  answers[`${path}/graph`] = graph;
  for (let after: string | null = null, page = 0; page < pagesMax; page++) {
    const at = `${path}/timeline${query({ after })}`;
    const read: RunTimeline = await call(at);
    answers[at] = read;
    after = read.next;
    if (after === null) break;
  }
  const tasks: string[] = [];
  for (let after: string | null = null, page = 0; page < pagesMax; page++) {
    const at = `${path}/steps${query({ limit: stepsPage, after })}`;
    const read: Page<Step> = await call(at);
    answers[at] = read;
    tasks.push(...read.items.flatMap(({ taskId }) => taskId ?? []));
    after = read.next;
    if (after === null) break;
  }
  if (graph.isFunction) await addJournal(`${path}/journal`, answers);
  answers[`${path}/signals?limit=1000`] = await call(`${path}/signals?limit=1000`);
  answers[historyPath(run.id)] = await call(historyPath(run.id));
  answers[`${path}/logs`] = await wholeLog(`${path}/logs`);
  for (const task of tasks.slice(0, tasksMax)) {
    const at = `/tasks/${encodeURIComponent(task)}`;
    [answers[at], answers[`${at}/attempts`]] = await Promise.all([call(at), call(`${at}/attempts`)]);
  }
  const data: ExportedData = { run: run.id, at: Date.now(), server: new URL(serverUrl).host, answers };
  const [script, style] = await Promise.all([exportFiles.script, exportFiles.style].map(async (url) => (await fetch(url)).text()));
  return { data, workflow: run.workflow, script: script ?? "", style: style ?? "" };
}

async function addJournal(path: string, answers: Record<string, unknown>): Promise<void> {
  for (let after: number | undefined, page = 0; page < pagesMax; page++) {
    const at = `${path}${query({ after })}`;
    const read: Journal = await call(at);
    answers[at] = read;
    after = read.next;
    if (after === undefined) return;
  }
}

async function wholeLog(path: string): Promise<{ items: LogChunk[] }> {
  const items: LogChunk[] = [];
  for (let after: string | null = null, page = 0; page < pagesMax; page++) {
    const read: Page<LogChunk> = await call(`${path}${query({ limit: 1_000, after })}`);
    items.push(...read.items);
    after = read.next;
    if (after === null || read.items.length === 0) break;
  }
  return { items };
}

/** The data cannot end the element that contains it. The file may load nothing and send nothing. */
function pageOf(text: string, script: string, style: string, workflow: string): string {
  const json = text.replaceAll("<", "\\u003c").replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
  const title = workflow.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} - Longshore</title>
<style>${style.replaceAll("</style", "<\\/style")}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="longshore-export">${json}</script>
<script type="module">${script.replaceAll("</script", "<\\/script")}</script>
</body>
</html>
`;
}
