// A source with the numbers of its lines, and the problems of its checker at their lines.

import type { DefinitionProblem } from "../core/shapes.ts";
import { Icon } from "../ui/icons.tsx";

export function SourceText({ text, problems }: { text: string; problems: readonly DefinitionProblem[] }) {
  const byLine = new Map(problems.flatMap(({ line, level }) => (line === null ? [] : [[line, level] as const])));
  return (
    <>
      <Problems problems={problems} />
      <pre class="source numbered" tabIndex={0}>
        {text.split("\n").map((line, at) => (
          <span key={at} data-level={byLine.get(at + 1)}>
            <i aria-hidden="true">{at + 1}</i>
            {line}
            {"\n"}
          </span>
        ))}
      </pre>
    </>
  );
}

export function Problems({ problems }: { problems: readonly DefinitionProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <ul class="problems" aria-label="Problems">
      {problems.map(({ level, message, field, line, column }, at) => (
        <li key={at} class={level === "error" ? "tone-bad" : "tone-warn"}>
          <Icon name={level === "error" ? "cross" : "warn"} />
          <span>
            {line !== null && (
              <strong class="num">
                Line {line}
                {column === null ? "" : `, column ${column}`}:{" "}
              </strong>
            )}
            <span class="problem-text">{message}</span>
            {field !== "" && line === null && <code> {field}</code>}
          </span>
        </li>
      ))}
    </ul>
  );
}
