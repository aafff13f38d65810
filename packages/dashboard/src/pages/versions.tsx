// The versions of a workflow, and what changed between two of them.

import { useApi } from "../core/resource.ts";
import { search, setQuery } from "../core/router.ts";
import type { Page, WorkflowDiff, WorkflowVersion } from "../core/shapes.ts";
import { Button, Problem, Time } from "../ui/parts.tsx";
import { DiffLines, StepChanges } from "./diff-lines.tsx";

const versionsMax = 200;

export function Versions({ path, newest }: { path: string; newest: number }) {
  const list = useApi<Page<WorkflowVersion>>(`${path}/versions?limit=${versionsMax}`, { everyMs: 15_000 });
  const versions = list.data.value?.items ?? [];
  const to = Number(search.value.get("to") ?? newest);
  const from = Number(search.value.get("from") ?? Math.max(1, to - 1));
  return (
    <div class="versions">
      <Problem error={list.error.value} />
      <ol class="version-list" aria-label="Versions">
        {versions.map(({ id, version, createdAt }) => (
          <li key={id}>
            <Button
              label={`Version ${version}`}
              pressed={version === to}
              onClick={() => setQuery({ to: String(version), from: String(Math.max(1, version - 1)) })}
            />
            <span class="dim">
              <Time at={createdAt} />
            </span>
          </li>
        ))}
      </ol>
      <section class="version-diff" aria-label="What changed">
        {versions.length === 1 ? (
          <p class="dim">
            There is one version so far. A changed definition becomes the next one; runs keep the version that they started with.
          </p>
        ) : (
          <Difference path={path} from={from} to={to} versions={versions} />
        )}
      </section>
    </div>
  );
}

interface DifferenceProps {
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly versions: readonly WorkflowVersion[];
}

function Difference({ path, from, to, versions }: DifferenceProps) {
  const isFirst = to <= 1;
  const diff = useApi<WorkflowDiff>(isFirst ? null : `${path}/versions/${from}...${to}`);
  if (isFirst) return <p class="dim">This is the first version.</p>;
  const read = diff.data.value;
  return (
    <>
      <p class="version-head">
        <label>
          What version {to} changed since{" "}
          <select value={String(from)} onChange={(event) => setQuery({ from: event.currentTarget.value })}>
            {versions
              .filter(({ version }) => version !== to)
              .map(({ version }) => (
                <option key={version} value={String(version)}>
                  version {version}
                </option>
              ))}
          </select>
        </label>
      </p>
      <Problem error={diff.error.value} />
      {read !== undefined && (
        <>
          <StepChanges steps={read.steps} />
          <DiffLines lines={read.lines} />
        </>
      )}
    </>
  );
}
