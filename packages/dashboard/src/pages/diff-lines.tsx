// The difference between two sources, line by line, and of their steps.

import { plural } from "../core/format.ts";
import type { WorkflowDiff } from "../core/shapes.ts";

const signs = { same: " ", added: "+", removed: "-", skipped: "…" } as const;
const words = { same: "", added: "added: ", removed: "removed: ", skipped: "" } as const;

export function DiffLines({ lines }: { lines: WorkflowDiff["lines"] }) {
  if (lines === null) return <p class="dim">The sources are too long to compare them line by line.</p>;
  if (!lines.some(({ op }) => op === "added" || op === "removed")) return <p class="dim">The sources are the same.</p>;
  return (
    <pre class="source diff" tabIndex={0}>
      {lines.map(({ op, text, count }, at) => (
        <span key={at} class={`diff-${op}`}>
          <span aria-hidden="true">{signs[op]} </span>
          <span class="unseen">{words[op]}</span>
          {op === "skipped" ? plural(count, "line") : text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

export function StepChanges({ steps: { added, removed, moved } }: { steps: WorkflowDiff["steps"] }) {
  const rows = [
    ["New steps", "tone-good", added],
    ["Steps that are gone", "tone-bad", removed],
    ["Steps with another place, lane or label", "tone-warn", moved],
  ] as const;
  const shown = rows.filter(([, , ids]) => ids.length > 0);
  if (shown.length === 0) return <p class="dim">The steps and their order are the same.</p>;
  return (
    <>
      {shown.map(([what, tone, ids]) => (
        <p key={what}>
          <strong class={tone}>
            {what} ({ids.length}):
          </strong>{" "}
          {ids.slice(0, 30).join(", ")}
          {ids.length > 30 ? ", …" : ""}
        </p>
      ))}
    </>
  );
}
