// Files of runs.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { del, get, operator, post, put, start, workflow, workflowDef } from "../steps.ts";

const PLAIN = { "content-type": "text/plain" };

/** Begins a file of a run and keeps its id, which is at the end of its handle. */
const begin = (name: string, body: unknown): Step =>
  post(name, "/files", body, { keep: { handle: "fileHandleId" }, keepMatch: { file: /conductor:\/\/file\/([^"]+)/ } });

export const files: Chapter = {
  name: "files",
  steps: [
    workflowDef("define", workflow("files_flow", [operator("WAIT", "wait")])),
    start("start", { name: "files_flow" }),
    start("start another", { name: "files_flow" }, "other"),
    begin("begin", { workflowId: "{{wf}}", taskId: "t1", fileName: "a.txt", contentType: "text/plain" }),
    get("facts at first", "/files/{{wf}}/{{file}}"),
    get("upload address", "/files/{{wf}}/{{file}}/upload-url"),
    get("download address too early", "/files/{{wf}}/{{file}}/download-url"),
    get("content too early", "/files/content/{{wf}}/{{file}}"),
    post("confirm too early", "/files/{{wf}}/{{file}}/upload-complete"),
    put("upload", "/files/content/{{wf}}/{{file}}", "hello", { headers: PLAIN }),
    get("facts after the upload", "/files/{{wf}}/{{file}}"),
    post("confirm", "/files/{{wf}}/{{file}}/upload-complete"),
    post("confirm again", "/files/{{wf}}/{{file}}/upload-complete"),
    get("facts at last", "/files/{{wf}}/{{file}}"),
    get("download address", "/files/{{wf}}/{{file}}/download-url"),
    get("content", "/files/content/{{wf}}/{{file}}"),
    put("upload again", "/files/content/{{wf}}/{{file}}", "other", { headers: PLAIN }),
    get("content at last", "/files/content/{{wf}}/{{file}}"),
    get("upload address at last", "/files/{{wf}}/{{file}}/upload-url"),
    get("of another run", "/files/{{other}}/{{file}}"),
    get("content of another run", "/files/content/{{other}}/{{file}}"),
    get("download address of another run", "/files/{{other}}/{{file}}/download-url"),
    get("unknown", "/files/{{wf}}/no-such-file"),
    put("upload to unknown", "/files/content/{{wf}}/no-such-file", "x", { headers: PLAIN }),
    post("confirm unknown", "/files/{{wf}}/no-such-file/upload-complete"),
    post("without a run", "/files", { fileName: "a.txt", contentType: "text/plain" }),
    post("of an unknown run", "/files", { workflowId: "no-such-run", fileName: "a.txt", contentType: "text/plain" }),
    post("without a type", "/files", { workflowId: "{{wf}}", fileName: "a.txt" }),
    post("without a name", "/files", { workflowId: "{{wf}}", contentType: "text/plain" }),
    begin("begin one for parts", { workflowId: "{{wf}}", fileName: "b.bin", contentType: "application/octet-stream" }),
    post("begin the parts", "/files/{{wf}}/{{file}}/multipart", undefined, { keep: { upload: "uploadId" } }),
    get("address of a part", "/files/{{wf}}/{{file}}/multipart/{{upload}}/part/1"),
    post("end the parts", "/files/{{wf}}/{{file}}/multipart/{{upload}}/complete", { partETags: ["a"] }),
    del("give up the parts", "/files/{{wf}}/{{file}}/multipart/{{upload}}"),
  ],
};
