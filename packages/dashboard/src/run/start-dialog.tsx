// Starts a run, with a form when the workflow has a schema for its input, otherwise with JSON. Also shows the command for the same start.

import { useSignal } from "@preact/signals";
import { call } from "../core/api.ts";
import { apiUrl } from "../core/place.ts";
import { go, href } from "../core/router.ts";
import type { Run } from "../core/shapes.ts";
import { ActionRow, Dialog, openDialog } from "../ui/dialog.tsx";
import { Command } from "../ui/parts.tsx";
import { say } from "../ui/toast.tsx";
import { type JsonSchema, SchemaForm } from "./schema-form.tsx";

interface StartOptions {
  readonly workflow: string;
  readonly input?: unknown;
  readonly schema?: JsonSchema | undefined;
  /** Inputs of earlier runs, to begin with. */
  readonly lastInputs?: readonly { readonly runId: string; readonly input?: unknown }[];
  readonly title?: string;
}

export function askStart(options: StartOptions): void {
  openDialog(() => <StartDialog {...options} />);
}

function StartDialog({ workflow, input, schema, lastInputs = [], title = `Start ${workflow}` }: StartOptions) {
  const text = useSignal(JSON.stringify(input === undefined ? initialOf(schema) : input, null, 2));
  const key = useSignal("");
  const asText = useSignal(schema === undefined);
  const problem = problemOf(text.value);
  const curl = `curl ${apiUrl}/runs -H 'content-type: application/json' -d '${compact(text.value, workflow, key.value).replaceAll("'", `'\\''`)}'`;
  return (
    <Dialog title={title} wide>
      {lastInputs.length > 0 && (
        <label class="field">
          Begin with
          <select
            onChange={(event) => {
              const chosen = lastInputs[Number(event.currentTarget.value)];
              text.value = JSON.stringify(chosen === undefined ? initialOf(schema) : chosen.input, null, 2);
            }}
          >
            <option value="-1">an empty input</option>
            {lastInputs.map(({ runId, input: earlier }, at) => (
              <option key={runId} value={String(at)}>
                {shortText(earlier)}
              </option>
            ))}
          </select>
        </label>
      )}
      {schema !== undefined && (
        <label class="check">
          <input
            type="checkbox"
            checked={asText.value}
            onChange={(event) => {
              asText.value = event.currentTarget.checked;
            }}
          />{" "}
          Write the input as JSON
        </label>
      )}
      {schema !== undefined && !asText.value && problem === "" ? (
        <SchemaForm
          schema={schema}
          value={JSON.parse(text.value)}
          onChange={(value) => {
            text.value = JSON.stringify(value, null, 2);
          }}
        />
      ) : (
        <label class="field">
          Input, as JSON
          <textarea
            rows={12}
            spellcheck={false}
            aria-invalid={problem !== ""}
            value={text.value}
            onInput={(event) => {
              text.value = event.currentTarget.value;
            }}
          />
        </label>
      )}
      <p class="note" role="status">
        {problem}
      </p>
      <label class="field">
        Key (a second start with the same key starts nothing)
        <input
          value={key.value}
          onInput={(event) => {
            key.value = event.currentTarget.value;
          }}
        />
      </label>
      <details>
        <summary>The same as a command</summary>
        <Command text={curl} />
      </details>
      <ActionRow
        verb="Start"
        act={async () => {
          if (problem !== "") throw new SyntaxError(problem);
          const run = await call<Run>("/runs", { method: "POST", body: compact(text.value, workflow, key.value) });
          say("The run was started.");
          go(href(["runs", run.id]));
        }}
      />
    </Dialog>
  );
}

/** The body of the request. It contains the input as it was typed, so that long numbers keep their digits. */
function compact(text: string, workflow: string, key: string): string {
  const input = text.trim() === "" ? "null" : text.trim();
  return `{"workflow":${JSON.stringify(workflow)},"input":${input}${key.trim() === "" ? "" : `,"key":${JSON.stringify(key.trim())}`}}`;
}

function shortText(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}

function problemOf(text: string): string {
  try {
    JSON.parse(text.trim() === "" ? "null" : text);
    return "";
  } catch (error) {
    return `This is not JSON yet: ${(error as Error).message}`;
  }
}

function initialOf(schema: JsonSchema | undefined): unknown {
  if (schema === undefined) return {};
  if (schema.default !== undefined) return schema.default;
  const entries = Object.entries(schema.properties ?? {}).flatMap(([name, each]) =>
    each.default === undefined ? [] : [[name, each.default]],
  );
  return Object.fromEntries(entries);
}
