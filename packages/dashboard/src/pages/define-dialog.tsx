// Defines a workflow from text: pasted, typed or dropped as a file. The server checks it while it is typed, and says what it would change.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, call } from "../core/api.ts";
import { serverUrl } from "../core/place.ts";
import { go, href } from "../core/router.ts";
import { whyNot } from "../core/session.ts";
import type { WorkflowCheck } from "../core/shapes.ts";
import { ActionRow, Dialog, openDialog } from "../ui/dialog.tsx";
import { Command } from "../ui/parts.tsx";
import { say } from "../ui/toast.tsx";
import { DiffLines, StepChanges } from "./diff-lines.tsx";
import { Problems } from "./source-text.tsx";

/** A check begins this long after the last key. */
const pauseMs = 300;
/** Larger files are for the command line. */
const fileBytesMax = 4_000_000;

const example = `name: hello
on: demand
jobs:
  greet: { run: echo hello }
  tell: { needs: greet, run: echo done }
`;

export function askDefine(text = ""): void {
  openDialog(() => <DefineDialog first={text} />);
}

const typeOf = (text: string) => (/^\s*\{/.test(text) ? "application/json" : "application/yaml");

function DefineDialog({ first }: { first: string }) {
  const text = useSignal(first);
  const checked = useSignal<WorkflowCheck | null>(null);
  const failed = useSignal("");
  useEffect(() => {
    checked.value = null;
    failed.value = "";
    const given = text.value;
    if (given.trim() === "") return;
    const controller = new AbortController();
    const options = { method: "POST", body: given, headers: { "content-type": typeOf(given) }, signal: controller.signal } as const;
    const timer = setTimeout(() => {
      call<WorkflowCheck>("/workflows/check", options).then(
        (answer) => {
          checked.value = answer;
        },
        (error: unknown) => {
          if (!controller.signal.aborted) failed.value = error instanceof ApiError ? error.message : String(error);
        },
      );
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text.value]);
  const take = async (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (file === undefined) return;
    if (file.size > fileBytesMax) failed.value = "The file is too large for this page. Use: npx longshore define FILE";
    else text.value = await file.text();
  };
  const result = checked.value;
  return (
    <Dialog title="Define a workflow" wide>
      <p class="note">
        YAML or JSON of any language that this server reads. A text with the name of a workflow becomes its next version; runs keep the
        version that they started with.
      </p>
      <label class="field">
        Definition
        <textarea
          class="mono"
          rows={14}
          spellcheck={false}
          placeholder={example}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
          onDragOver={(event) => event.preventDefault()}
          onDrop={(event) => {
            event.preventDefault();
            void take(event.dataTransfer?.files);
          }}
        />
      </label>
      <p class="define-from">
        <label class="button">
          <input type="file" class="unseen" accept=".yml,.yaml,.json" onChange={(event) => void take(event.currentTarget.files)} />
          Read a file
        </label>
        <span class="dim">or drop one into the text, or on the command line:</span>
        <Command text={`npx longshore define FILE --on ${serverUrl}`} />
      </p>
      <div role="status" class="check-result">
        {text.value.trim() !== "" && result === null && failed.value === "" && <p class="dim">Checking…</p>}
        {failed.value !== "" && <p class="tone-bad">{failed.value}</p>}
        {result !== null && <Problems problems={result.problems} />}
        {result !== null && <Verdict result={result} />}
      </div>
      {result !== null && result.steps !== null && result.isNew && (
        <details open>
          <summary>What it changes</summary>
          <StepChanges steps={result.steps} />
          <DiffLines lines={result.lines} />
        </details>
      )}
      <ActionRow
        verb="Define"
        blocked={whyNot("definition.write")}
        act={async () => {
          const given = text.value;
          const { definition } = await call<{ definition: { name: string; version: number } }>("/definitions", {
            method: "POST",
            body: given,
            headers: { "content-type": typeOf(given) },
          });
          say(`${definition.name} has version ${definition.version}.`);
          go(href(["workflows", definition.name]));
        }}
      />
    </Dialog>
  );
}

function Verdict({ result: { name, dialect, isNew, problems, steps } }: { result: WorkflowCheck }) {
  if (problems.some(({ level }) => level === "error")) return null;
  if (!isNew) return <p class="dim">The newest version of {name} is the same already.</p>;
  return (
    <p class="tone-good">
      {steps === null ? "A new workflow" : "A new version of"} <strong>{name}</strong> in {dialect}.
    </p>
  );
}
